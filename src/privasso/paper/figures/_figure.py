"""What a figure consists of, the laws and designs it shows, and how much is computed for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

import privasso as pv
from privasso._validation import integer
from privasso.figures import BLUE, GREEN, ORANGE
from privasso.paper.experiments import Experiment

Tables = Mapping[str, pl.DataFrame]

ALPHA, RHO, SIGMA_XI = 0.5, 0.1, 0.1
#: The paper does not print the λ of its figures; these cover the range it describes.
LAMS = (0.1, 0.2, 0.5)
#: The noise level of the paper's Fig. 4.
PATH_SIGMA = 0.1


@dataclass(frozen=True)
class Settings:
    """Grids, sizes and sample counts of a reproduction: `full`, `quick` or `tiny`.

    Attributes
    ----------
    name : str
        "full", "quick" or "tiny".
    seed : int
        Seed of all draws.
    n_features, samples : int
        Columns N of the data of Figs. 3 and 4, and data sets per point.
    sigmas : tuple of float
        Noise levels of Fig. 3.
    path : tuple of float
        Regularisations λ of Fig. 4.
    curve : int
        Points of a predicted curve.
    critical_features, kkt_features, leakage_features, tail_features : int or tuple of int
        Columns of the data of the other figures, and `correlated_features`, `similar_features`,
        `small_features`.
    critical_samples, kkt_samples, leakage_samples, tail_samples, correlated_samples : int
        Data sets per point of the other figures, and `similar_samples`, `small_samples`.
    correlated_draws, correlated_levels : int
        Draws of a prediction for correlated columns, and noise levels of a curve.

    Examples
    --------
    >>> Settings.full().n_features, Settings.full().samples
    (1000, 100)
    """

    name: str
    seed: int
    n_features: int
    samples: int
    sigmas: tuple[float, ...]
    path: tuple[float, ...]
    curve: int
    critical_features: int
    critical_samples: int
    kkt_features: tuple[int, ...]
    kkt_samples: int
    leakage_features: tuple[int, ...]
    leakage_samples: int
    tail_features: tuple[int, ...]
    tail_samples: int
    correlated_features: int
    correlated_samples: int
    correlated_draws: int
    correlated_levels: int
    similar_features: int
    similar_samples: int
    small_features: int
    small_samples: int

    @classmethod
    def full(cls, *, seed: int = 0, samples: int = 100) -> Settings:
        """N = 1000 as in the paper, 100 data sets per point."""
        samples = integer("samples", samples, minimum=2)
        return cls(
            name="full", seed=integer("seed", seed, minimum=0), n_features=1000, samples=samples,
            sigmas=(0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.17, 0.22, 0.3, 0.4, 0.55, 0.75, 1.0),
            path=(0.04, 0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.14, 0.17, 0.2, 0.25, 0.3, 0.5, 1.0),
            curve=160,
            critical_features=300, critical_samples=samples,
            kkt_features=(250, 500, 1000, 2000), kkt_samples=max(2, samples // 5),
            leakage_features=(200, 400), leakage_samples=5 * samples,
            tail_features=(125, 250, 500, 1000, 2000), tail_samples=samples,
            correlated_features=300, correlated_samples=max(2, samples // 10),
            correlated_draws=32, correlated_levels=10,
            similar_features=500, similar_samples=max(2, samples // 4),
            small_features=400, small_samples=max(2, samples // 4),
        )  # fmt: skip

    @classmethod
    def quick(cls, *, seed: int = 0, samples: int = 12) -> Settings:
        """Smaller data, fewer data sets and coarser grids: about a minute."""
        samples = integer("samples", samples, minimum=2)
        return cls(
            name="quick", seed=integer("seed", seed, minimum=0), n_features=400, samples=samples,
            sigmas=(0.01, 0.03, 0.06, 0.1, 0.17, 0.3, 0.55, 1.0),
            path=(0.04, 0.06, 0.08, 0.1, 0.14, 0.2, 0.3, 0.5, 1.0),
            curve=160,
            critical_features=150, critical_samples=samples,
            kkt_features=(125, 250, 500, 1000), kkt_samples=max(2, samples // 2),
            leakage_features=(100, 200), leakage_samples=8 * samples,
            tail_features=(125, 250, 500, 1000), tail_samples=samples,
            correlated_features=150, correlated_samples=max(2, samples // 4),
            correlated_draws=8, correlated_levels=10,
            similar_features=200, similar_samples=max(2, samples // 2),
            small_features=200, small_samples=max(2, samples // 2),
        )  # fmt: skip

    @classmethod
    def tiny(cls, *, seed: int = 0, samples: int = 3) -> Settings:
        """The smallest run that computes everything, for tests; its verdicts mean nothing."""
        return cls(
            name="tiny", seed=integer("seed", seed, minimum=0), n_features=60,
            samples=integer("samples", samples, minimum=2),
            sigmas=(0.03, 0.1, 0.4), path=(0.06, 0.2, 0.7), curve=20,
            critical_features=40, critical_samples=2, kkt_features=(40, 80), kkt_samples=2,
            leakage_features=(40,), leakage_samples=2, tail_features=(40, 80), tail_samples=2,
            correlated_features=30, correlated_samples=2, correlated_draws=4, correlated_levels=3,
            similar_features=40, similar_samples=2, small_features=40, small_samples=2,
        )  # fmt: skip

    def record(self) -> dict[str, Any]:
        """Return the settings and the constants of the paper for a JSON file."""
        constants = {"alpha": ALPHA, "rho": RHO, "sigma_xi": SIGMA_XI, "lams": LAMS}
        named = asdict(self) | constants | {"path_sigma": PATH_SIGMA}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in named.items()
        }


@dataclass(frozen=True)
class Law:
    """A law of the scales, and how it is named in a sentence and in a title."""

    scales: pv.ScaleLaw
    name: str
    title: str


LAWS = {
    "uniform": Law(pv.Uniform(), "v1", "v1, uniform scales"),
    "lognormal": Law(pv.LogNormal(), "v2", "v2, log-normal scales"),
}


@dataclass(frozen=True)
class Look:
    """A noise design at level 1, and how it is named and drawn."""

    noise: pv.NoiseDesign
    name: str
    colour: str
    marker: str


LOOKS = {
    "isotropic": Look(pv.Isotropic(1.0), "isotropic", ORANGE, "s"),
    "gram": Look(pv.Gram(1.0), "Gram-based", BLUE, "o"),
    "power:1": Look(pv.PowerLaw(1.0, 1.0), "power 1", GREEN, "^"),
}
#: The designs that the paper compares; the third is ours.
DESIGNS = ("isotropic", "gram")


@dataclass(frozen=True)
class PaperFigure:
    """One figure: how it is drawn and described from its tables, and where these come from.

    `simulated` gives the experiments of each simulated table, one below the other; `predicted`
    gives the tables that are computed from theory.
    """

    name: str
    title: str
    draw: Callable[[Tables], Any]
    caption: Callable[[Tables], str]
    simulated: Callable[[Settings], Mapping[str, Sequence[Experiment]]] = lambda settings: {}
    predicted: Callable[[Settings], Mapping[str, pl.DataFrame]] = lambda settings: {}

    def _parts(self, settings: Settings) -> dict[str, dict[str, Experiment]]:
        """The experiments of each table, under the names that progress and errors give them."""
        return {
            table: {
                f"{table}_{k}" if len(parts) > 1 else table: part for k, part in enumerate(parts)
            }
            for table, parts in self.simulated(settings).items()
        }

    def experiments(self, settings: Settings) -> dict[str, Experiment]:
        """All simulations by name, for `run`."""
        every = self._parts(settings).values()
        return {name: experiment for parts in every for name, experiment in parts.items()}

    def tables(self, settings: Settings, results: Tables) -> dict[str, pl.DataFrame]:
        """All tables, from the results of the simulations."""
        simulated = {
            table: pl.concat(results[name] for name in parts)
            for table, parts in self._parts(settings).items()
        }
        return {**simulated, **self.predicted(settings)}


def shared(settings: Settings) -> dict[str, Any]:
    """What all experiments have in common: the seed and the model of the paper."""
    return {"seed": settings.seed, "alpha": ALPHA, "rho": RHO, "sigma_xi": SIGMA_XI}


def model(law: str, alpha: float = ALPHA, rho: float = RHO) -> pv.Model:
    """Return the model of the paper's figures under a law of scales."""
    return pv.Model(alpha=alpha, rho=rho, sigma_xi=SIGMA_XI, scales=LAWS[law].scales)


def shown(table: pl.DataFrame, count: str) -> pl.DataFrame:
    """Rows in which at least half of the data sets gave a value; means of fewer are not shown."""
    return table.filter(table[count] * 2 >= table["samples"])


def named(rows: pl.DataFrame, first: str, **what: Any) -> pl.DataFrame:
    """Add columns that say what rows are about; those that are named in `first` come first."""
    values = {name: x if isinstance(x, pl.Expr) else pl.lit(x) for name, x in what.items()}
    found = rows.with_columns(**values, version=pl.lit(pv.__version__))
    return found.select(*first.split(), pl.exclude(first.split()))


def crossing(rows: pl.DataFrame, name: str) -> tuple[int, float]:
    """Where Algorithm 1 begins to converge on fewer than half of the data sets, in row order.

    The first such row, and the value of a column that is interpolated there in its logarithm. The
    row is -1 if there is none.
    """
    x = np.log(rows[name].to_numpy())
    share = (rows["amp_converged"] / rows["samples"]).to_numpy()
    below = np.flatnonzero(share < 0.5)
    k = int(below[0]) if below.size else -1
    if k <= 0:
        return k, float("nan")
    t = (share[k - 1] - 0.5) / (share[k - 1] - share[k])
    return k, float(np.exp((1.0 - t) * x[k - 1] + t * x[k]))
