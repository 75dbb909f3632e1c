"""Predictions of state evolution as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

import privasso as pv
from privasso.paper.figures._looks import LOOKS, model

if TYPE_CHECKING:
    import polars as pl

FloatArray = NDArray[np.float64]


def infinite_limit(law: str, design: str) -> bool:
    """Whether E grows without bound with the number of columns, because of the small ones."""
    fp = pv.state_evolution(model(law), 1.0, LOOKS[design].noise.with_sigma(0.1))
    return fp.status is pv.theory.FixedPointStatus.INFINITE_ERROR


def noise_curves(
    laws: Iterable[str],
    designs: Iterable[str],
    lams: Iterable[float],
    sigmas: ArrayLike | None,
    *,
    n_features: int | None,
    points: int = 100,
) -> pl.DataFrame:
    """State evolution against the noise level, one row per point.

    Without `sigmas`, each curve runs from 0.001 to 0.999 of its critical noise level. With
    `n_features` None it is the limit of infinitely many columns.
    """
    import polars as pl

    parts = []
    for law in laws:
        for design in designs:
            for lam in lams:
                noise = LOOKS[design].noise
                levels = sigmas
                if levels is None:
                    edge = pv.critical_noise(model(law), lam, noise, n_features=n_features)
                    levels = edge * _fractions(points)
                curve = pv.tradeoff(model(law), lam, noise, levels, n_features=n_features)
                parts.append(_named(curve, law, design, n_features))
    return pl.concat(parts)


def grid(
    laws: Iterable[str],
    designs: Iterable[str],
    lams: ArrayLike,
    sigmas: ArrayLike,
    *,
    n_features: int | None,
) -> pl.DataFrame:
    """State evolution at every pair of λ and σ_η, one row per pair."""
    import polars as pl

    return pl.concat(
        _named(
            pv.phase_diagram(model(law), lams, LOOKS[design].noise, sigmas, n_features=n_features),
            law,
            design,
            n_features,
        )
        for law in laws
        for design in designs
    )


def _fractions(points: int) -> FloatArray:
    """Fractions of the critical level: a quarter of them below 0.1, the rest from 0.1 to 0.999."""
    few = points // 4
    low = np.geomspace(1e-3, 0.1, few, endpoint=False)
    return np.concatenate([low, np.geomspace(0.1, 0.999, points - few)])


def _named(curve: pl.DataFrame, law: str, design: str, n_features: int | None) -> pl.DataFrame:
    """Add the columns that say what a curve is about."""
    import polars as pl

    return curve.select(
        pl.lit(law).alias("law"),
        pl.lit(design).alias("design"),
        pl.lit(n_features, dtype=pl.Int64).alias("n_features"),
        pl.all(),
        pl.lit(pv.__version__).alias("version"),
    )
