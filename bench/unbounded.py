"""Recognising that there is no minimiser, against a bounded solve."""

from __future__ import annotations

import numpy as np
import polars as pl

import privasso as pv
from bench.matrices import MATRICES
from bench.timing import best_times

TITLE = "Unbounded problems, each proved by a ray"
NOTE = (
    "v1 and v2: independent columns, M = 2500, N = 5000; bounded is the same data at twice the "
    "critical λ of state evolution. Target: at most 20 times. Degree 4: products of the ten "
    "columns of the diabetes data, M = 442, N = 1000, isotropic noise; λ_crit is that of the "
    "linear programme, and bounded the solve at 1.1 λ_crit."
)


def run() -> pl.DataFrame:
    rows = []
    for name, law in (("v1", pv.Uniform()), ("v2", pv.LogNormal())):
        s = pv.Model(0.5, scales=law).sample(5000, rng=0)
        eta = pv.Gram(0.1).draw(s.v, rng=1)
        critical = 0.1 * pv.theory.critical_lambda_ratio(pv.Model(0.5, scales=law), pv.Gram(0.1))
        lams = {"bounded": 2.0 * critical} | {f"{f} λ_crit": f * critical for f in (0.5, 0.9)}
        rows += _rows(name, s.F, s.y, eta, lams)
    F, y = MATRICES["diabetes, degree 4: 442 × 1000"]()
    scale = 0.3 * float(np.linalg.norm(F, axis=0).mean())
    eta = scale * np.random.default_rng(0).standard_normal(F.shape[1])
    critical = pv.critical_lambda(F, eta)
    parts = (0.3, 0.9, 0.99, 0.999, 1.001, 1.01)
    lams = {"bounded": 1.1 * critical} | {f"{f} λ_crit": f * critical for f in parts}
    return pl.DataFrame(rows + _rows("degree 4", F, y, eta, lams))


def _rows(
    name: str, F: np.ndarray, y: np.ndarray, eta: np.ndarray, lams: dict[str, float]
) -> list[dict[str, object]]:
    times = best_times(
        {
            label: lambda lam=lam: pv.solve(F, y, lam, eta, throw=False)
            for label, lam in lams.items()
        }
    )
    rows: list[dict[str, object]] = []
    for label, lam in lams.items():
        sol = pv.solve(F, y, lam, eta, throw=False)
        rows.append(
            {
                "columns": name,
                "λ": label,
                "status": sol.status.name,
                "passes": sol.n_passes,
                "s": times[label],
                "times a bounded solve": times[label] / times["bounded"],
            }
        )
    return rows
