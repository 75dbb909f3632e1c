"""What a figure consists of, the laws and designs it shows, and how much is computed for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple, TypeAlias

import polars as pl

import privasso as pv
from privasso._types import Passed
from privasso._validation import integer
from privasso.figures import BLUE, GREEN, ORANGE, Figure
from privasso.paper._experiment import Experiment

Tables: TypeAlias = Mapping[str, pl.DataFrame]
#: The experiment of each simulated table, or several whose rows are one below the other.
Simulated: TypeAlias = Mapping[str, Experiment | Sequence[Experiment]]

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
    draws, levels : int
        Draws of a prediction for correlated columns, and noise levels of such a curve.
    others : mapping of str to (int or tuple of int, int)
        Columns and data sets per point of the other figures, by name.

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
    draws: int
    levels: int
    others: Mapping[str, tuple[int | tuple[int, ...], int]]

    def __post_init__(self) -> None:
        integer("samples", self.samples, minimum=2)
        integer("seed", self.seed, minimum=0)

    @classmethod
    def full(cls, *, seed: int = 0, samples: int = 100) -> Settings:
        """N = 1000 as in the paper, 100 data sets per point."""
        few = max(2, samples // 4)
        return cls(
            "full", seed, 1000, samples,
            sigmas=(0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.17, 0.22, 0.3, 0.4, 0.55, 0.75, 1.0),
            path=(0.04, 0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.14, 0.17, 0.2, 0.25, 0.3, 0.5, 1.0),
            curve=160, draws=32, levels=10,
            others={
                "map": (300, samples), "kkt": ((250, 500, 1000, 2000), max(2, samples // 5)),
                "leakage": ((200, 400), 5 * samples), "similar": (500, few), "small": (400, few),
                "tail": ((125, 250, 500, 1000, 2000), samples),
                "correlated": (300, max(2, samples // 10)),
            },
        )  # fmt: skip

    @classmethod
    def quick(cls, *, seed: int = 0, samples: int = 12) -> Settings:
        """Smaller data, fewer data sets and coarser grids: about a minute."""
        few = max(2, samples // 2)
        return cls(
            "quick", seed, 400, samples,
            sigmas=(0.01, 0.03, 0.06, 0.1, 0.17, 0.3, 0.55, 1.0),
            path=(0.04, 0.06, 0.08, 0.1, 0.14, 0.2, 0.3, 0.5, 1.0),
            curve=160, draws=8, levels=10,
            others={
                "map": (150, samples), "kkt": ((125, 250, 500, 1000), few),
                "leakage": ((100, 200), 8 * samples), "similar": (200, few), "small": (200, few),
                "tail": ((125, 250, 500, 1000), samples),
                "correlated": (150, max(2, samples // 4)),
            },
        )  # fmt: skip

    @classmethod
    def tiny(cls, *, seed: int = 0, samples: int = 3) -> Settings:
        """The smallest run that computes everything, for tests; its verdicts mean nothing."""
        some = dict.fromkeys(("map", "similar", "small"), (40, 2))
        two = dict.fromkeys(("kkt", "tail"), ((40, 80), 2))
        return cls(
            "tiny", seed, 60, samples,
            sigmas=(0.03, 0.1, 0.4), path=(0.06, 0.2, 0.7), curve=20, draws=4, levels=3,
            others={**some, **two, "leakage": ((40,), 2), "correlated": (30, 2)},
        )  # fmt: skip

    def data(self, figure: str = "") -> dict[str, Passed]:
        """What experiments of a figure have in common: model, seed, columns and data sets."""
        size, samples = self.others.get(figure, (self.n_features, self.samples))
        model = {"alpha": ALPHA, "rho": RHO, "sigma_xi": SIGMA_XI}
        return {"n_features": size, "samples": samples, "seed": self.seed, **model}

    def record(self) -> dict[str, object]:
        """Return the settings and the constants of the paper for a JSON file."""
        constants = {"alpha": ALPHA, "rho": RHO, "sigma_xi": SIGMA_XI, "lams": LAMS}
        return json.loads(json.dumps(asdict(self) | constants | {"path_sigma": PATH_SIGMA}))


class Law(NamedTuple):
    """A law of the scales, and how it is named in a sentence and in a title."""

    scales: pv.ScaleLaw
    name: str
    title: str


LAWS = {
    "uniform": Law(pv.Uniform(), "v1", "v1, uniform scales"),
    "lognormal": Law(pv.LogNormal(), "v2", "v2, log-normal scales"),
}


class Look(NamedTuple):
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

    Tables are `simulated` in experiments or `predicted` from theory.
    """

    name: str
    title: str
    draw: Callable[[Tables], Figure]
    caption: Callable[[Tables], str]
    simulated: Callable[[Settings], Simulated] = lambda settings: {}
    predicted: Callable[[Settings], Tables] = lambda settings: {}


def model(law: str, alpha: float = ALPHA, rho: float = RHO) -> pv.Model:
    """Return the model of the paper's figures under a law of scales."""
    return pv.Model(alpha=alpha, rho=rho, sigma_xi=SIGMA_XI, scales=LAWS[law].scales)


def shown(table: pl.DataFrame, count: str) -> pl.DataFrame:
    """Rows in which at least half of the data sets gave a value; means of fewer are not shown."""
    return table.filter(table[count] * 2 >= table["samples"])


def named(rows: pl.DataFrame, first: str, **what: object) -> pl.DataFrame:
    """Add columns that say what rows are about; those that are named in `first` come first."""
    values = {name: x if isinstance(x, pl.Expr) else pl.lit(x) for name, x in what.items()}
    found = rows.with_columns(**values, version=pl.lit(pv.__version__))
    return found.select(*first.split(), pl.exclude(first.split()))
