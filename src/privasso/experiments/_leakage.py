"""The on-average KL divergence of data sets, by the exact density, beside its predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso._validation import integer
from privasso.experiments._checks import (
    design_name,
    distinct,
    frame,
    known,
    law_name,
    level,
    mean_and_error,
    normalise,
    regularisation,
)
from privasso.experiments._data import model_of, model_parameters, stream
from privasso.experiments._unit import Result, Unit
from privasso.noise import design_from_name
from privasso.solvers import Status, solve
from privasso.theory import privacy_loss, state_evolution

if TYPE_CHECKING:
    import polars as pl

KIND = "leakage"
#: To be raised whenever the meaning of a result changes.
SCHEMA = 1

Point = tuple[str, str, float, float]


@dataclass(frozen=True)
class Leakage:
    """OnAveKL of the released estimate when one record is replaced, without approximation.

    For each data set, noise is drawn, the estimate released, and log p(x|D)/p(x|D') computed
    exactly for `records` neighbours D', each with another record replaced by a new one of the
    same law. Their mean is one draw; ``onavekl_mc`` is the mean over the ``exists`` data sets
    that have a minimiser. It stands beside the formula for N columns (``onavekl``) and the
    component-wise one of the paper. All are averages under the model; none is an ε.

    A unit is one data set at one point.

    Parameters
    ----------
    points : sequence of (law, design, lam, sigma)
    n_features, samples, seed : int
        As in `Points`.
    records : int
        Neighbours a data set.
    alpha, rho, sigma_xi : float
        As in `Model`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from privasso.experiments import Leakage, run
    >>> leakage = Leakage((("uniform", "gram", 0.2, 0.1),), n_features=100, samples=20)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     row = run({"leak": leakage}, store=Path(folder))["leak"].row(0, named=True)
    >>> abs(row["onavekl_mc"] - row["onavekl"]) < 4 * row["onavekl_mc_se"]
    True
    """

    points: tuple[Point, ...]
    n_features: int = 400
    samples: int = 100
    seed: int = 0
    records: int = 12
    alpha: float = 0.5
    rho: float = 0.1
    sigma_xi: float = 0.1

    def __post_init__(self) -> None:
        normalise(
            self,
            points=distinct("points", self.points, _point),
            n_features=integer("n_features", self.n_features, minimum=2),
            records=integer("records", self.records, minimum=1),
        )
        rows = round(self.alpha * self.n_features)
        if self.records > rows:
            raise ValueError(f"records must not exceed the {rows} rows, not {self.records}")

    def units(self) -> list[Unit]:
        """One unit a (point, data set)."""
        return [
            Unit(
                KIND,
                {
                    **model_parameters(self, point[0]),
                    "schema": SCHEMA,
                    "design": point[1],
                    "lam": point[2],
                    "sigma": point[3],
                    "n_features": self.n_features,
                    "records": self.records,
                    "seed": self.seed,
                    "index": k,
                },
                "{}, {}, λ = {:g}, σ = {:g}, data set {}".format(*point, k),
            )
            for point in self.points
            for k in range(self.samples)
        ]

    def table(self, results: list[Result]) -> pl.DataFrame:
        """Summarise the units, in their order, beside the predictions."""
        from privasso import __version__

        rows = []
        for i, (law, name, lam, sigma) in enumerate(self.points):
            part = results[i * self.samples : (i + 1) * self.samples]
            losses = known([result["loss"][0] for result in part])
            mean, error = mean_and_error(losses)
            fp = state_evolution(
                model_of(model_parameters(self, law)),
                lam,
                design_from_name("design", name, sigma),
                n_features=self.n_features,
            )
            formula, paper = (fp.onavekl(kind) for kind in ("joint", "paper"))
            rows.append(
                {
                    "law": law,
                    "design": name,
                    "lam": lam,
                    "sigma": sigma,
                    "n_features": self.n_features,
                    "samples": self.samples,
                    "seed": self.seed,
                    "version": __version__,
                    "exists": losses.size,
                    "onavekl_mc": mean,
                    "onavekl_mc_se": error,
                    "onavekl": None if np.isnan(formula) else formula,
                    "onavekl_paper": None if np.isnan(paper) else paper,
                    "stability_theory": fp.stability,
                }
            )
        return frame(rows)


def compute(parameters: dict[str, Any]) -> Result:
    """Mean exact loss of one data set over its neighbours, None if it has no minimiser."""
    model, n = model_of(parameters), parameters["n_features"]
    m, records = round(model.alpha * n), parameters["records"]
    lam, seed, index = (parameters[name] for name in ("lam", "seed", "index"))
    name = f"{parameters['law']} {n}"
    # The new records come from the same columns and coefficients: they are rows of a larger sample.
    larger = replace(model, alpha=(m + records) / n)
    s = larger.sample(n, rng=stream(seed, f"leakage data {name}", index))
    design = design_from_name("design", parameters["design"], parameters["sigma"])
    eta = design.draw(s.v, rng=stream(seed, f"leakage noise {name}", index))
    F, y, variances = s.F[:m], s.y[:m], design.variances(s.v)
    released = solve(F, y, lam, eta, throw=False)
    if released.status is not Status.CONVERGED:
        return {"loss": [None]}
    losses = []
    for k in range(records):
        F2, y2 = F.copy(), y.copy()
        F2[k], y2[k] = s.F[m + k], s.y[m + k]
        losses.append(privacy_loss(F, y, F2, y2, lam, variances, released.x))
    return {"loss": [float(np.mean(losses))]}


def _point(point: Point) -> Point:
    law, design, lam, sigma = point
    if level(sigma) == 0.0:
        raise ValueError("sigma must be positive: without noise the divergence is infinite")
    return law_name(law), design_name(design), regularisation(lam), level(sigma)
