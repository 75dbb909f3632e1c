"""Intervals for the coefficients of a fit that was released."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

import numpy as np

from privasso._documents import DocumentError, Fields
from privasso._types import Json
from privasso._validation import probability
from privasso.programs._laws import FEW, NEVER, POINTS, Law, at_level

Target: TypeAlias = Literal["huber", "least-squares", "logistic"]
#: Why there is no interval.
_NEVER = "no interval: it does not vary by itself, or was not chosen"
_MORE = "no interval: needs {} × the rows"
_FEW = "no interval: it rests on a few rows"


@dataclass(frozen=True, eq=False)
class Intervals:
    """Laws of coefficients, for each target: what a fit would estimate without penalty and ridge.

    Attributes
    ----------
    laws : mapping of target to Law
        In the units of the coefficients.
    kappa : float
        Where the residuals of the Huber target are clipped, in the units of the labels.
    given : bool
        Whether columns were chosen first; then intervals are about the model of these columns.
    """

    laws: Mapping[Target, Law] = field(repr=False)
    kappa: float
    given: bool = False

    def confint(
        self, level: float = 0.95, target: str | None = None, *, simultaneous: bool = False
    ) -> np.ndarray:
        """Low and high of each coefficient, of shape (n, 2); NaN where none can be given.

        Parameters
        ----------
        level : float
            How often an interval holds the coefficient of the population.
        target : "least-squares", "huber" or "logistic"
            Whose coefficient it is.
        simultaneous : bool
            Whether all intervals are to hold at once so often.
        """
        z, law = at_level(probability("level", level)), self.law(target)
        if simultaneous:
            z = float(np.interp(z, POINTS[POINTS > 0.0], law.together))
        if z > POINTS[-1]:
            raise ValueError("level is too close to one; choose one below 0.999999")
        ends = [[np.interp(s * z, POINTS, q) for s in (-1.0, 1.0)] for q in law.quantiles]
        return np.where(law.unknown[:, None], np.nan, np.array(ends).reshape(-1, 2))

    def reasons(self, target: str | None = None) -> list[str]:
        """Why a coefficient has no interval, in words; empty for one that has."""
        law = self.law(target)
        return [
            _reason(more) if gone else ""
            for gone, more in zip(law.unknown.tolist(), law.more.tolist(), strict=True)
        ]

    def estimates(self, target: str | None = None) -> np.ndarray:
        """The middle of each law: the coefficient without penalty and ridge; NaN if unknown."""
        law = self.law(target)
        return np.where(law.unknown, np.nan, law.quantiles[:, POINTS.size // 2])

    def law(self, target: str | None) -> Law:
        """That of a target, or of the first one."""
        known = list(self.laws)
        found = known[0] if target is None else target
        if found not in known:
            raise ValueError(
                f"target must be one of {', '.join(map(repr, known))}, for which this fit has "
                f"intervals, not {target!r}"
            )
        return self.laws[found]

    def scaled(self, unit: float) -> Intervals:
        """The same for labels that were measured in this unit."""
        laws = {
            name: replace(law, quantiles=unit * law.quantiles) for name, law in self.laws.items()
        }
        return replace(self, laws=laws, kappa=unit * self.kappa)

    def to_dict(self) -> dict[str, Json]:
        """Plain values for JSON."""
        laws = {
            name: {
                "quantiles": law.quantiles.ravel().tolist(),
                "unknown": law.unknown.astype(int).tolist(),
                "more": law.more.tolist(),
                "together": law.together.tolist(),
            }
            for name, law in self.laws.items()
        }
        return {"kappa": self.kappa, "given": self.given, "laws": laws}

    @classmethod
    def from_dict(cls, values: object, n: int) -> Intervals:
        """Rebuild what `to_dict` wrote for n coefficients; anything else raises `DocumentError`."""
        fields = Fields(values, "the intervals")
        named = fields.inner("laws")
        known: dict[str, Target] = {one: one for one in get_args(Target)}
        laws = {}
        for name in named.names():
            if name not in known:
                raise DocumentError(f"intervals have the unknown target {name!r:.60}")
            laws[known[name]] = _law(named.inner(name), n)
        found = cls(laws, fields.number("kappa", above=0.0), fields.flag("given"))
        if not laws:
            raise DocumentError("intervals need a target")
        fields.end()
        return found

    def selected(self, at: np.ndarray) -> Intervals:
        """Those of some of the coefficients."""
        laws = {
            name: replace(
                law, quantiles=law.quantiles[at], unknown=law.unknown[at], more=law.more[at]
            )
            for name, law in self.laws.items()
        }
        return replace(self, laws=laws)

    def widened(self, at: np.ndarray, size: int) -> Intervals:
        """Those of a larger model, in which the others have none."""
        laws = {}
        for name, law in self.laws.items():
            quantiles, unknown = np.zeros((size, POINTS.size)), np.ones(size, dtype=bool)
            quantiles[at], unknown[at] = law.quantiles, law.unknown
            more = np.full(size, NEVER)
            more[at] = law.more
            laws[name] = replace(law, quantiles=quantiles, unknown=unknown, more=more)
        return replace(self, laws=laws, given=True)


def made_up_intervals(targets: tuple[Target, ...], n: int, number: float) -> Intervals:
    """Some for n coefficients whose numbers are all the same, which take room in a file."""
    law = Law(
        np.full((n, POINTS.size), number),
        np.ones(n, dtype=bool),
        np.full(n, abs(number)),
        np.full(int(np.sum(POINTS > 0.0)), number),
    )
    return Intervals(dict.fromkeys(targets, law), abs(number))


def _reason(more: float) -> str:
    """Why there is no interval."""
    if more < NEVER:
        return _MORE.format(_rounded(more))
    return _NEVER if more < FEW else _FEW


def _rounded(more: float) -> str:
    """A factor with one digit more than is known.

    >>> _rounded(1.234), _rounded(57.3)
    ('1.3', '60')
    """
    step = 10.0 ** (math.floor(math.log10(max(more, 1.0))) - (more < 10.0))
    return f"{math.ceil(max(more, 1.0) / step - 1e-9) * step:g}"


def _law(fields: Fields, n: int) -> Law:
    """One that `Intervals.to_dict` wrote."""
    quantiles = fields.numbers("quantiles", n * POINTS.size).reshape(n, POINTS.size)
    if np.any(np.diff(quantiles, axis=1) < 0.0):
        raise DocumentError("quantiles must increase")
    unknown, more = fields.numbers("unknown", n) > 0.0, fields.numbers("more", n, least=0.0)
    together = fields.numbers("together", POINTS[POINTS > 0.0].size)
    fields.end()
    return Law(quantiles, unknown, more, together)
