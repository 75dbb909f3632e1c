"""Where AMP and vector AMP converge, and vector AMP against its state evolution.

``python -m bench.vamp --write`` renews its tables in `docs/data`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import privasso as pv
from bench.page import renew
from privasso.model import (
    AutoRegressive,
    Blocks,
    Factors,
    MarchenkoPastur,
    Orthogonal,
    PowerSpectrum,
    RotatedModel,
    TwoLevel,
)
from privasso.solvers import Amp, Vamp, VampTextbook

N, RUNS = 400, 8
LAW = pv.LogNormal(0.0, 0.5)
SPECTRA: dict[str, Any] = {
    "independent": MarchenkoPastur(),
    "orthogonal": Orthogonal(),
    "two levels, 100": TwoLevel(100.0),
    "1/k": PowerSpectrum(1.0),
    "1/k²": PowerSpectrum(2.0),
}
CORRELATED: dict[str, Any] = {
    "AR .4": AutoRegressive(0.4),
    "AR .6": AutoRegressive(0.6),
    "AR .8": AutoRegressive(0.8),
    "AR .95": AutoRegressive(0.95),
    "blocks of 20, .3": Blocks(20, 0.3),
    "blocks of 20, .9": Blocks(20, 0.9),
    "a factor, .2": Factors(1, 0.2),
}


def convergence() -> pl.DataFrame:
    """How many of eight data sets each form settles on, at α = 0.5 and λ = 0.2."""
    models: dict[str, Any] = {
        name: RotatedModel(0.5, scales=LAW, spectrum=spectrum) for name, spectrum in SPECTRA.items()
    }
    models |= {
        name: pv.Model(0.5, scales=LAW, covariance=kind) for name, kind in CORRELATED.items()
    }
    rows = []
    for name, model in models.items():
        rng = np.random.default_rng(0)
        counts = {"AMP": 0, "VAMP, textbook": 0, "VAMP": 0}
        steps, worst = [], 0.0
        for _ in range(RUNS):
            s = model.sample(N, rng)
            eta = pv.Gram(0.05).draw(s.v, rng)
            for key, method in (
                ("AMP", Amp(polish=False)),
                ("VAMP, textbook", VampTextbook(max_iter=200)),
                ("VAMP", Vamp()),
            ):
                sol = pv.solve(s.F, s.y, 0.2, eta, method=method, throw=False)
                counts[key] += sol.status is pv.Status.CONVERGED
                if key == "VAMP":
                    steps.append(sol.n_iter)
                    worst = max(worst, sol.kkt)
        rows.append(
            {"columns": name, **counts, "steps": float(np.median(steps)), "KKT": f"{worst:.0e}"}
        )
        print(rows[-1], flush=True)
    return pl.DataFrame(rows)


def iterates() -> pl.DataFrame:
    """E of the iterates of vector AMP at 600 columns, 24 data sets, and state evolution."""
    rows = []
    for name, spectrum in list(SPECTRA.items())[:4]:
        for alpha in (0.5, 1.5):
            model = RotatedModel(alpha, scales=LAW, spectrum=spectrum)
            noise = pv.Gram(0.05)
            path = pv.state_evolution(model, 0.2, noise, n_features=600).trajectory
            path = path[np.minimum(np.arange(1, 7), len(path) - 1)][:, [0, 2]]
            rng = np.random.default_rng(0)
            runs = []
            for _ in range(24):
                s = model.sample(600, rng)
                problem = pv.problem.Problem.from_labels(s.F, s.y, 0.2, noise.draw(s.v, rng))
                state = VampTextbook().init(problem, np.sqrt(s.v))
                each = []
                for _ in path:
                    each.append((np.mean(s.v * (state.x - s.x0) ** 2) + 0.01, state.active))
                    state = VampTextbook().step(problem, state)
                runs.append(each)
            mean, error = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1) / np.sqrt(24)
            off = np.abs(mean - path) / error
            row: dict[str, Any] = {"spectrum": name, "α": str(alpha)}
            for k in (0, 1, 5):
                row[f"E, step {k + 1}"] = mean[k, 0]
                row[f"predicted, {k + 1}"] = path[k, 0]
            row["largest difference"] = f"{off.max():.1f}"
            rows.append(row)
            print(row, flush=True)
    return pl.DataFrame(rows)


if __name__ == "__main__":
    renew(
        "python -m bench.vamp", __doc__, {"convergence": convergence, "iterates": iterates}, "vamp"
    )
