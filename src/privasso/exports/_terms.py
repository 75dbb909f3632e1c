"""A model as a sum with one term for each column of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privasso.encoding import Encoding, LevelCode, NumberCode
from privasso.fit import ReleasedModel


@dataclass(frozen=True)
class NumberTerm:
    """coef × value of a column of numbers.

    `missing`: the whole term where the value is missing; None where it must not be.
    """

    name: str
    coef: float
    missing: float | None


@dataclass(frozen=True)
class LevelTerm:
    """A number for each level of a column of texts.

    `values`: the levels whose number is not zero. Every other text has zero. `missing`: the number
    where the text is missing; None where it must not be.
    """

    name: str
    values: tuple[tuple[str, float], ...]
    missing: float | None


@dataclass(frozen=True)
class Terms:
    """intercept + Σ terms; of a logistic regression that is the log odds of the positive class.

    - `intercept`: what is added to the terms.
    - `terms`: one for each column that changes predictions.
    - `classes`: names of the negative and the positive class; None for a linear model.
    - `statement`: the privacy statement, for a comment.
    """

    intercept: float
    terms: tuple[NumberTerm | LevelTerm, ...]
    classes: tuple[str, str] | None
    statement: str


def terms_of(model: ReleasedModel) -> Terms:
    """Return a model as a sum over the columns that it needs.

    A level that the model does not know counts as the reference, as with ``unknown="ignore"``.
    """
    needed = model.needed()
    encoding = needed.encoding
    if encoding is None:
        if needed.feature_names is None:
            raise ValueError(
                "the model has no names of columns, which other software needs; fit it from a "
                "table or a data frame"
            )
        encoding = Encoding(tuple(NumberCode(name) for name in needed.feature_names))
    classes = None if model.classes is None else (str(model.classes[0]), str(model.classes[1]))
    return Terms(
        model.intercept, tuple(_terms(encoding, needed.coef)), classes, str(model.guarantee)
    )


def _terms(encoding: Encoding, coef: np.ndarray) -> Iterator[NumberTerm | LevelTerm]:
    at = 0
    for code in encoding.codes:
        own = [float(x) for x in coef[at : at + len(code.outputs)]]
        at += len(own)
        yield _number(code, own) if isinstance(code, NumberCode) else _level(code, own)


def _number(code: NumberCode, coef: list[float]) -> NumberTerm:
    if code.fill is None:
        return NumberTerm(code.name, coef[0], None)
    return NumberTerm(code.name, coef[0], coef[0] * code.fill + sum(coef[1:]))


def _level(code: LevelCode, coef: list[float]) -> LevelTerm:
    shown = zip(code.shown, coef, strict=False)  # the coefficient of a missing text comes last
    values = tuple((level, x) for level, x in shown if x != 0.0)
    if code.missing:
        return LevelTerm(code.name, values, coef[-1])
    return LevelTerm(code.name, values, None if code.reference is not None else 0.0)
