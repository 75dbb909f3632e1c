"""The two classes of binary labels, which are public."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from privasso._text import is_unicode
from privasso._validation import attempt, real_float

#: A class: a name, or a number; True and False count as 1 and 0.
Name: TypeAlias = str | float | int | bool

#: Said of classes that were found in the labels.
OBSERVED = (
    "which two values the labels take is public, and would be the same without any one person: the "
    "classes were taken from the labels"
)


@dataclass(frozen=True)
class Classes:
    """Two classes, coded as 0 and 1.

    Attributes
    ----------
    negative, positive : str or number
        Probabilities are those of the positive class.
    observed : bool
        Whether the classes were found in the labels, which the privacy statement then says.
    """

    negative: Name = 0
    positive: Name = 1
    observed: bool = False

    @classmethod
    def given(cls, classes: Iterable[object]) -> Classes:
        """Check a pair (negative, positive)."""
        names: list[Name] = []
        with contextlib.suppress(TypeError):
            names = [_plain(one) for one in classes]
        right = not isinstance(classes, (str, bytes)) and len(names) == 2
        if not (right and all(_is_name(one) for one in names) and names[0] != names[1]):
            raise ValueError(
                "classes must be two different names or numbers, (negative, positive), "
                f"not {classes!r}"
            )
        return cls(names[0], names[1])

    @classmethod
    def seen(cls, y: object) -> Classes:
        """Take the classes from the labels that are not missing; no error shows a label."""
        found: list[Name] = []
        with contextlib.suppress(TypeError, ValueError):
            found = [_plain(one) for one in np.unique(cls.present(np.asarray(y))).tolist()]
        if len(found) != 2 or not all(_is_name(one) for one in found):
            few = "; the labels hold one class" if len(found) == 1 else ""
            raise ValueError(
                "Only binary classification is supported. Unknown label type: the labels must be "
                f"of exactly two classes{few}"
            )
        return cls(found[0], found[1], observed=True)

    @staticmethod
    def present(y: np.ndarray) -> np.ndarray:
        """The labels that are neither None nor NaN."""
        return np.array([one for one in y.tolist() if one is not None and one == one], y.dtype)

    @property
    def names(self) -> tuple[Name, Name]:
        """Both, the negative one first."""
        return self.negative, self.positive

    def coded(self, y: object) -> np.ndarray:
        """Labels as 0 and 1; any other value is a missing label, NaN, since an error would tell.

        Labels whose type as a whole is not that of the classes are refused.
        """
        values = attempt(lambda: np.asarray(y))
        if values is None or values.ndim != 1:
            raise ValueError("the labels must be one column")
        kinds = {"U" if isinstance(name, str) else "fiub" for name in self.names}
        if values.dtype.kind not in "".join(kinds) + "O":
            raise ValueError(
                f"the labels are not of the type of the two classes {self.negative!r} and "
                f"{self.positive!r}"
            )
        codes = {self.negative: 0.0, self.positive: 1.0}
        return np.array([_code(one, codes) for one in values.tolist()])


def _code(one: Name, codes: dict[Name, float]) -> float:
    with contextlib.suppress(TypeError):  # a list, for instance, is nothing to look up
        return codes.get(one, math.nan)
    return math.nan


def _plain(value: Any) -> Name:
    """A NumPy scalar as a plain value."""
    return value.item() if isinstance(value, np.generic) else value


def _is_name(value: object) -> bool:
    if isinstance(value, str):
        return is_unicode(value)
    if isinstance(value, bool):
        return True
    with contextlib.suppress(ValueError):
        real_float("class", value)
        return True
    return False
