"""The on-average KL divergence of data sets, by the exact density, and its predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

import numpy as np

from privasso._validation import integer
from privasso.noise import noise_from_name
from privasso.paper.experiments._checks import (
    columns,
    design_name,
    distinct,
    law_name,
    noise_level,
    regularisation,
)
from privasso.paper.experiments._data import model_of, stream
from privasso.paper.experiments._experiment import Experiment
from privasso.paper.experiments._store import Parameters, Result
from privasso.paper.experiments._table import Row, known, mean_and_error
from privasso.solvers import Status, solve
from privasso.theory import privacy_loss, state_evolution

Point = tuple[str, str, float, float]


@dataclass(frozen=True)
class LeakageExperiment(Experiment):
    """OnAveKL of the released estimate when one record is replaced, without approximation.

    For each data set D, noise is drawn, the estimate x is released, and log p(x|D)/p(x|D') is
    computed exactly for `records` neighbours D', each with another record replaced by a new one
    from the same law. The mean over the neighbours is one draw; ``onavekl_mc`` is the mean over
    the ``exists`` data sets that have a minimiser. The table has one row per point and also gives
    the formula for N columns (``onavekl``) and the component-wise one of the paper. All of these
    are averages under the model; none is an ε.

    Parameters
    ----------
    points : sequence of tuples
        (law, design, λ, σ_η) with names as in `GridExperiment` and σ_η > 0.
    n_features : int
        Columns N.
    records : int
        Neighbours per data set.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from privasso.paper.experiments import LeakageExperiment, run
    >>> point = ("uniform", "gram", 0.2, 0.1)
    >>> leakage = LeakageExperiment((point,), n_features=100, samples=20)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     row = run({"leak": leakage}, store=Path(folder))["leak"].row(0, named=True)
    >>> abs(row["onavekl_mc"] - row["onavekl"]) < 4 * row["onavekl_mc_se"]
    True
    """

    kind: ClassVar[str] = "leakage"

    points: tuple[Point, ...] = ()
    _: KW_ONLY
    n_features: int = 400
    records: int = 12

    def checked(self) -> dict[str, object]:
        n_features, records = columns(self.n_features), integer("records", self.records, minimum=1)
        rows = round(self.alpha * n_features)
        if records > rows:
            raise ValueError(f"records must not exceed the {rows} rows, not {records}")
        points = distinct("points", self.points, _point)
        return {"points": points, "n_features": n_features, "records": records}

    def cases(self) -> dict[str, Parameters]:
        return {
            f"{law}, {design}, λ = {lam}, σ = {sigma}": {
                "law": law,
                "design": design,
                "lam": lam,
                "sigma": sigma,
                "n_features": self.n_features,
                "records": self.records,
            }
            for law, design, lam, sigma in self.points
        }

    @staticmethod
    def compute(parameters: Parameters) -> Result:
        """Mean exact loss of one data set over its neighbours; None if it has no minimiser."""
        model, law, n = model_of(parameters), parameters["law"], parameters["n_features"]
        m, records, lam = round(model.alpha * n), parameters["records"], parameters["lam"]
        # The new records have the same columns and coefficients: they are rows of a larger sample.
        larger = replace(model, alpha=(m + records) / n)
        s = larger.sample(n, rng=stream(parameters, "leakage data", law, n))
        noise = noise_from_name("design", parameters["design"], parameters["sigma"])
        eta = noise.draw(s.v, rng=stream(parameters, "leakage noise", law, n))
        F, y, variances = s.F[:m], s.y[:m], noise.variances(s.v)
        released = solve(F, y, lam, eta, throw=False)
        if released.status is not Status.CONVERGED:
            return {"loss": [None]}
        losses = []
        for k in range(records):
            F2, y2 = F.copy(), y.copy()
            F2[k], y2[k] = s.F[m + k], s.y[m + k]
            losses.append(privacy_loss(F, y, F2, y2, lam, variances, released.x))
        return {"loss": [float(np.mean(losses))]}

    def rows(self, case: Parameters, results: list[Result]) -> Iterator[Row]:
        losses = known([result["loss"][0] for result in results])
        mean, error = mean_and_error(losses)
        noise = noise_from_name("design", case["design"], case["sigma"])
        fp = state_evolution(
            self.model(case["law"]), case["lam"], noise, n_features=self.n_features
        )
        formula, paper = (fp.onavekl(kind) for kind in ("joint", "paper"))
        yield {
            **{name: case[name] for name in ("law", "design", "lam", "sigma")},
            "exists": losses.size,
            "onavekl_mc": mean,
            "onavekl_mc_se": error,
            "onavekl": None if np.isnan(formula) else formula,
            "onavekl_paper": None if np.isnan(paper) else paper,
            "stability_theory": fp.stability,
        }


def _point(point: Point) -> Point:
    law, design, lam, sigma = point
    if noise_level(sigma) == 0.0:
        raise ValueError("sigma must be positive: without noise the divergence is infinite")
    return law_name(law), design_name(design), regularisation(lam), noise_level(sigma)
