"""What a prediction costs, beside what it predicts."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl

import privasso as pv
from bench.timing import best_times
from privasso.solvers import Amp

TITLE = "Predictions"
NOTE = (
    "A point is the fixed point with both divergences, for the limit of many columns; `solve` and "
    "plain AMP (without polish, to 1e-6) run at N = 1000, one thread of arithmetic or more. "
    "Targets: a point below 1/20 of an AMP solve, 400 points below 2 imports of what they need."
)

LAM = 0.2
POINTS = {
    "uniform, gram": (pv.Uniform(), pv.Gram(0.1)),
    "uniform, gamma = 1": (pv.Uniform(), pv.PowerLaw(0.1, 1.0)),
    "lognormal, gram": (pv.LogNormal(0.0, 0.5), pv.Gram(0.1)),
    "lognormal, isotropic": (pv.LogNormal(0.0, 0.5), pv.Isotropic(0.1)),
}
INNER = 50  # a point is too short for one reading of the clock


def run() -> pl.DataFrame:
    rows = []
    imported = import_seconds()
    for name, (law, design) in POINTS.items():
        model = pv.Model(scales=law)
        s = model.sample(1000, rng=0)
        eta = design.draw(s.v, rng=1)
        sigmas = np.linspace(0.001, 0.25, 400)

        def points(model=model, design=design) -> None:
            for _ in range(INNER):
                fp = pv.state_evolution(model, LAM, design)
                fp.onavekl()
                fp.onavekl(kind="paper")

        def solve(s=s, eta=eta, **options) -> pv.solvers.Solution:
            return pv.solve(s.F, s.y, LAM, eta, throw=False, **options)

        times = best_times(
            {
                "points": points,
                "solve": solve,
                "amp": lambda solve=solve: solve(method=Amp(polish=False), tol=1e-6),
                "grid": lambda m=model, d=design, g=sigmas: pv.tradeoff(m, LAM, d, g),
            },
            repeat=9,
        )
        point = times["points"] / INNER
        for what, cost, reference, other in (
            ("point", point, "solve", times["solve"]),
            ("point", point, "plain AMP", times["amp"]),
            ("400 points", times["grid"], "import", imported),
        ):
            rows.append((f"{what}: {name}", 1e3 * cost, reference, 1e3 * other, cost / other))
    return pl.DataFrame(rows, schema=["what", "ms", "beside", "its ms", "ratio"], orient="row")


def import_seconds() -> float:
    """Seconds until a prediction can be made in a new process: modules load at their first use."""
    code = "import privasso as pv; pv.state_evolution"
    code = f"import time; t = time.perf_counter(); {code}; print(time.perf_counter() - t)"
    runs = [subprocess.check_output([sys.executable, "-W", "ignore", "-c", code]) for _ in range(4)]
    return min(float(run) for run in runs)
