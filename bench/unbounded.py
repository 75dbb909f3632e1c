"""Recognising at N = 5000 that there is no minimiser, against a bounded solve."""

from __future__ import annotations

import polars as pl

import privasso as pv
from bench.timing import best_times

TITLE = "An unbounded problem at M = 2500, N = 5000, proved by a ray"
NOTE = (
    "Bounded: the same data at twice the critical λ of state evolution. Target: at most 20 times."
)


def run() -> pl.DataFrame:
    rows = []
    for name, law in (("v1", pv.Uniform()), ("v2", pv.LogNormal())):
        s = pv.Model(0.5, scales=law).sample(5000, rng=0)
        eta = pv.Gram(0.1).draw(s.v, rng=1)
        critical = 0.1 * pv.theory.critical_lambda_ratio(pv.Model(0.5, scales=law), pv.Gram(0.1))
        lams = {"bounded": 2.0 * critical} | {f"{f} λ_crit": f * critical for f in (0.5, 0.9)}
        times = best_times(
            {
                label: lambda lam=lam, s=s, eta=eta: pv.solve(s.F, s.y, lam, eta, throw=False)
                for label, lam in lams.items()
            }
        )
        for label, lam in lams.items():
            sol = pv.solve(s.F, s.y, lam, eta, throw=False)
            rows.append(
                {
                    "law": name,
                    "λ": label,
                    "status": sol.status.name,
                    "passes": sol.n_passes,
                    "s": times[label],
                    "times a bounded solve": times[label] / times["bounded"],
                }
            )
    return pl.DataFrame(rows)
