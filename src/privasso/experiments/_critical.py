"""The critical λ/σ_η of data sets, by linear programme, beside its prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso._validation import integer
from privasso.experiments._checks import (
    design_name,
    distinct,
    frame,
    law_name,
    mean_and_error,
    normalise,
)
from privasso.experiments._data import DataSet, model_of, model_parameters
from privasso.experiments._unit import Result, Unit
from privasso.noise import design_from_name
from privasso.problem import critical_lambda
from privasso.theory import critical_lambda_ratio

if TYPE_CHECKING:
    import polars as pl

KIND = "critical"
#: To be raised whenever the meaning of a result changes.
SCHEMA = 1


@dataclass(frozen=True)
class Critical:
    """λ_crit/σ_η below which a data set has no minimiser, for every law × design.

    A unit is one data set with one design; its data and noise are those that `Points` draws from
    the same seed. The programme takes about 0.5 s at 250 × 500 and 5 s at 500 × 1000.

    The table has one row a (law, design): mean, standard error, median and two quantiles of the
    ratio, and `critical_lambda_ratio` for N columns and for infinitely many (null where it is
    infinite).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from privasso.experiments import Critical, run
    >>> critical = Critical(("lognormal",), ("gram",), n_features=100, samples=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     row = run({"map": critical}, store=Path(folder))["map"].row(0, named=True)
    >>> abs(row["ratio"] - row["ratio_theory"]) < 4 * row["ratio_se"]
    True
    """

    laws: tuple[str, ...] = ("uniform", "lognormal")
    designs: tuple[str, ...] = ("isotropic", "gram")
    n_features: int = 500
    samples: int = 20
    seed: int = 0
    alpha: float = 0.5
    rho: float = 0.1
    sigma_xi: float = 0.1

    def __post_init__(self) -> None:
        normalise(
            self,
            laws=distinct("laws", self.laws, law_name),
            designs=distinct("designs", self.designs, design_name),
            n_features=integer("n_features", self.n_features, minimum=2),
        )

    def units(self) -> list[Unit]:
        """One unit a (law, design, data set)."""
        return [
            Unit(
                KIND,
                {
                    **model_parameters(self, law),
                    "schema": SCHEMA,
                    "design": design,
                    "n_features": self.n_features,
                    "seed": self.seed,
                    "index": k,
                },
                f"{law}, {design}, data set {k}",
            )
            for law, design, k in product(self.laws, self.designs, range(self.samples))
        ]

    def table(self, results: list[Result]) -> pl.DataFrame:
        """Summarise the units, in their order, beside the predictions."""
        from privasso import __version__

        rows = []
        for i, (law, name) in enumerate(product(self.laws, self.designs)):
            part = results[i * self.samples : (i + 1) * self.samples]
            ratios = np.array([result["ratio"][0] for result in part])
            mean, error = mean_and_error(ratios)
            q10, median, q90 = np.quantile(ratios, [0.1, 0.5, 0.9]).tolist()
            model, design = model_of(model_parameters(self, law)), _unit_design(name)
            limit = critical_lambda_ratio(model, design)
            rows.append(
                {
                    "law": law,
                    "design": name,
                    "alpha": self.alpha,
                    "n_features": self.n_features,
                    "samples": self.samples,
                    "seed": self.seed,
                    "version": __version__,
                    "ratio": mean,
                    "ratio_se": error,
                    "ratio_median": median,
                    "ratio_q10": q10,
                    "ratio_q90": q90,
                    "ratio_theory": critical_lambda_ratio(
                        model, design, n_features=self.n_features
                    ),
                    "ratio_limit": limit if math.isfinite(limit) else None,
                }
            )
        return frame(rows)


def compute(parameters: dict[str, Any]) -> Result:
    """Solve the linear programme of one data set."""
    data = DataSet.draw(parameters)
    return {"ratio": [critical_lambda(data.sample.F, data.direction(parameters["design"]))]}


def _unit_design(name: str) -> Any:
    return design_from_name("design", name, 1.0)
