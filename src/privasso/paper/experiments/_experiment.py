"""The base of all experiments: cases, their data sets, and a table of the results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from privasso._validation import integer
from privasso.model import Model
from privasso.paper.experiments._store import Parameters, Result, Unit
from privasso.paper.experiments._table import Row, frame
from privasso.scales import law_from_name

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """A grid of cases, each computed on `samples` data sets.

    A unit of work is one data set of one case. The seed, the law of scales, the number of columns
    and the index of the data set decide its random numbers, so that another grid sees the same
    data.

    Parameters
    ----------
    samples : int
        Data sets per case.
    seed : int
        Seed of all draws.
    alpha, rho, sigma_xi : float
        As in `Model`.
    """

    kind: ClassVar[str]
    """Name of the computation, part of the key under which results are stored."""
    schema: ClassVar[int] = 1
    """Version of the results; raise it whenever their meaning changes."""

    samples: int = 100
    seed: int = 0
    alpha: float = 0.5
    rho: float = 0.1
    sigma_xi: float = 0.1

    @abstractmethod
    def checked(self) -> Mapping[str, object]:
        """Return the checked values of the fields that this experiment adds to the base."""

    @abstractmethod
    def cases(self) -> dict[str, Parameters]:
        """Return the parameters of each case by its name; ``law`` and ``n_features`` are required.

        The names appear in progress and in errors.
        """

    @staticmethod
    @abstractmethod
    def compute(parameters: Parameters) -> Result:
        """Compute one unit from the parameters of its case, the model, the seed and the index."""

    @abstractmethod
    def rows(self, case: Parameters, results: list[Result]) -> Iterator[Row]:
        """Yield the rows of the table that the units of one case give."""

    def __post_init__(self) -> None:
        model = Model(self.alpha, self.rho, self.sigma_xi)
        self._set(
            {
                "alpha": model.alpha,
                "rho": model.rho,
                "sigma_xi": model.sigma_xi,
                "samples": integer("samples", self.samples, minimum=2),
                "seed": integer("seed", self.seed, minimum=0),
            }
        )
        self._set(self.checked())

    def _set(self, values: Mapping[str, object]) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)  # the class is frozen

    def model(self, law: str) -> Model:
        """Return the model of the data under that law of scales."""
        return Model(self.alpha, self.rho, self.sigma_xi, law_from_name("law", law))

    def units(self) -> list[Unit]:
        """Return one unit per case and data set, case after case."""
        shared: Parameters = {
            "schema": self.schema,
            "alpha": self.alpha,
            "rho": self.rho,
            "sigma_xi": self.sigma_xi,
            "seed": self.seed,
        }
        return [
            Unit(self.kind, {**shared, **case, "index": index}, f"{name}, data set {index}")
            for name, case in self.cases().items()
            for index in range(self.samples)
        ]

    def table(self, results: list[Result]) -> pl.DataFrame:
        """Return the table, from the results of the units in their order."""
        from privasso import __version__

        shared = {"samples": self.samples, "seed": self.seed, "version": __version__}
        return frame(
            [
                {"n_features": case["n_features"], **shared, **row}
                for k, case in enumerate(self.cases().values())
                for row in self.rows(case, results[k * self.samples : (k + 1) * self.samples])
            ]
        )
