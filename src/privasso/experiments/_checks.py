"""Checks and small statistics that the experiments share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso._validation import integer, nonnegative_float, positive_float
from privasso.model import Model
from privasso.noise import design_from_name
from privasso.scales import law_from_name

if TYPE_CHECKING:
    import polars as pl


def law_name(text: str) -> str:
    """Return the name of a law after a check that there is one."""
    law_from_name("law", text)
    return text.lower()


def design_name(text: str) -> str:
    """Return the name of a design after a check that there is one."""
    design_from_name("design", text, 1.0)
    return text.lower()


def distinct(name: str, values: Iterable[Any], check: Any) -> tuple[Any, ...]:
    """Return checked values as a tuple; refuse none at all and the same one twice."""
    found = tuple(check(value) for value in values)
    if not found:
        raise ValueError(f"{name} is empty; give at least one value")
    if len(set(found)) < len(found):
        raise ValueError(f"{name} holds the same value twice")
    return found


def level(value: object) -> float:
    """A noise level, zero or more."""
    return nonnegative_float("sigma", value)


def regularisation(value: object) -> float:
    """A λ > 0."""
    return positive_float("lam", value)


def normalise(experiment: Any, **checked: Any) -> None:
    """Set the checked fields of a frozen experiment, and check the ones that all have."""
    model = Model(experiment.alpha, experiment.rho, experiment.sigma_xi)
    checked |= {name: getattr(model, name) for name in ("alpha", "rho", "sigma_xi")}
    checked["samples"] = integer("samples", experiment.samples, minimum=2)
    checked["seed"] = integer("seed", experiment.seed, minimum=0)
    for name, value in checked.items():
        object.__setattr__(experiment, name, value)


def known(values: Sequence[float | None]) -> np.ndarray:
    """The numbers of a list, without its Nones."""
    return np.array([value for value in values if value is not None], dtype=np.float64)


def mean_and_error(values: np.ndarray) -> tuple[float | None, float | None]:
    """Mean and standard error; None for fewer than two values.

    >>> mean_and_error(np.array([1.0, 3.0])), mean_and_error(np.array([1.0]))
    ((2.0, 1.0), (None, None))
    """
    if values.size < 2:
        return None, None
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


def or_none(values: np.ndarray, where: np.ndarray) -> list[float | None]:
    """Numbers as JSON values: None where they are not meant to exist."""
    return [
        float(value) if there and math.isfinite(value) else None
        for value, there in zip(values, where, strict=True)
    ]


#: Columns that hold words and whole numbers; all others hold numbers, or null.
_WORDS = {"law", "design", "version", "status_theory", "status_limit"}
_COUNTS = {"n_features", "samples", "seed", "exists", "unbounded", "unsolved", "converged"}
_COUNTS |= {"amp_converged", "amp_unbounded", "amp_flicker", "amp_diverged"}


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return rows as a table, with column types that do not depend on the values."""
    import polars as pl  # only tables need it, and it takes a while to import

    types = {
        name: pl.String if name in _WORDS else pl.Int64 if name in _COUNTS else pl.Float64
        for name in rows[0]
    }
    return pl.DataFrame({name: [row[name] for row in rows] for name in types}, schema=types)
