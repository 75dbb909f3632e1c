"""The critical λ/σ_η of data sets, by linear programme, and its prediction."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from privasso.noise import noise_from_name
from privasso.paper.experiments._checks import columns, design_name, distinct, law_name
from privasso.paper.experiments._data import DataSet
from privasso.paper.experiments._experiment import Experiment
from privasso.paper.experiments._store import Parameters, Result
from privasso.paper.experiments._table import Row, mean_and_error
from privasso.problem import critical_lambda
from privasso.theory import critical_lambda_ratio


@dataclass(frozen=True)
class CriticalExperiment(Experiment):
    """λ_crit/σ_η below which a data set has no minimiser, for every law and design.

    The data and noise are those that `GridExperiment` draws from the same seed. The programme
    takes about 0.5 s at 250 × 500 and 5 s at 500 × 1000.

    The table has one row per law and design: mean, standard error, median and two quantiles of the
    ratio, and `critical_lambda_ratio` for N columns and for infinitely many (null where it is
    infinite).

    Parameters
    ----------
    laws, designs : sequences of str
        As in `GridExperiment`.
    n_features : int
        Columns N.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from privasso.paper.experiments import CriticalExperiment, run
    >>> critical = CriticalExperiment(("lognormal",), ("gram",), n_features=100, samples=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     row = run({"map": critical}, store=Path(folder))["map"].row(0, named=True)
    >>> abs(row["ratio"] - row["ratio_theory"]) < 4 * row["ratio_se"]
    True
    """

    kind: ClassVar[str] = "critical"

    laws: tuple[str, ...] = ("uniform", "lognormal")
    designs: tuple[str, ...] = ("isotropic", "gram")
    _: KW_ONLY
    n_features: int = 500
    samples: int = 20

    def checked(self) -> dict[str, object]:
        return {
            "laws": distinct("laws", self.laws, law_name),
            "designs": distinct("designs", self.designs, design_name),
            "n_features": columns(self.n_features),
        }

    def cases(self) -> dict[str, Parameters]:
        return {
            f"{law}, {design}": {"law": law, "design": design, "n_features": self.n_features}
            for law, design in product(self.laws, self.designs)
        }

    @staticmethod
    def compute(parameters: Parameters) -> Result:
        """Solve the linear programme of one data set."""
        data = DataSet.draw(parameters)
        return {"ratio": [critical_lambda(data.sample.F, data.direction(parameters["design"]))]}

    def rows(self, case: Parameters, results: list[Result]) -> Iterator[Row]:
        ratios = np.array([result["ratio"][0] for result in results])
        mean, error = mean_and_error(ratios)
        q10, median, q90 = np.quantile(ratios, [0.1, 0.5, 0.9]).tolist()
        model, noise = self.model(case["law"]), noise_from_name("design", case["design"], 1.0)
        limit = critical_lambda_ratio(model, noise)
        yield {
            "law": case["law"],
            "design": case["design"],
            "alpha": self.alpha,
            "ratio": mean,
            "ratio_se": error,
            "ratio_median": median,
            "ratio_q10": q10,
            "ratio_q90": q90,
            "ratio_theory": critical_lambda_ratio(model, noise, n_features=self.n_features),
            "ratio_limit": limit if math.isfinite(limit) else None,
        }
