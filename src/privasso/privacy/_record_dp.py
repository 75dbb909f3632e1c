"""Differential privacy of whole records: covariates and labels are protected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from privasso._validation import (
    TOO_CLOSE,
    ZERO_ONE,
    check_coded,
    positive_float,
    real_array,
    separated,
)
from privasso.accounting import GaussianLoss, Loss
from privasso.privacy._guarantee import PREPARED, Guarantee
from privasso.privacy._kind import PRIVATE, Formal, LabelBounds, Terms, register_kind
from privasso.queries import Relation, check_budget

#: Names and pairs, pairs, one pair, or what stands for them.
Bounds: TypeAlias = tuple[object, ...] | str
#: What can be read as such: a mapping, pairs, an array.
GivenBounds: TypeAlias = Any


def checked_bounds(bounds: GivenBounds) -> Bounds:
    """Bounds as one pair or several, or as names and pairs: values that can be hashed.

    In place of any pair there may be "0/1".

    >>> checked_bounds({"age": (18, 98), "male": "0/1"})
    (('age', (18.0, 98.0)), ('male', '0/1'))
    """
    if bounds is None:
        raise ValueError(
            "RecordDP needs bounds=, the smallest and largest value of each column, from public "
            "knowledge such as a data dictionary: the noise must hide any record that is possible, "
            "and bounds taken from the data would reveal its extreme records; bounds='private' "
            "finds ranges with noise, for a share of the budget"
        )
    if isinstance(bounds, str):
        if bounds not in (PRIVATE, ZERO_ONE):
            raise ValueError(
                f"bounds must be pairs (low, high), '0/1' or 'private', not {bounds!r}"
            )
        return bounds
    if isinstance(bounds, tuple) and bounds and _named(bounds[0]):
        bounds = dict(bounds)  # as stored, by `dataclasses.replace`
    if isinstance(bounds, Mapping):
        pairs = tuple((str(name), _entries([pair])[0]) for name, pair in bounds.items())
        if not pairs:
            raise ValueError("bounds is empty; give (low, high) for each column")
        return pairs
    if _is_pair(bounds):
        return _pairs([bounds])[0]  # of all columns
    return _entries(bounds)


def _of_columns(
    bounds: GivenBounds, n_columns: int, names: Sequence[str] | None
) -> list[GivenBounds]:
    """A pair or "0/1" for each column."""
    if bounds == ZERO_ONE or isinstance(bounds[0], float):
        return [bounds] * n_columns
    if _named(bounds[0]):
        known = dict(bounds)
        if names is None:
            raise ValueError(
                "bounds are given by name, but the columns of X have no names; pass a data "
                "frame, or bounds as an array with one row (low, high) per column"
            )
        missing = [name for name in names if name not in known]
        if missing:
            raise ValueError(f"bounds are missing for {_listed(missing)}")
        return [known[name] for name in names]
    if len(bounds) != n_columns:
        raise ValueError(
            f"bounds must have one row (low, high) for each of the {n_columns} columns, not "
            f"{len(bounds)}"
        )
    return list(bounds)


def _is_pair(bounds: GivenBounds) -> bool:
    listed = isinstance(bounds, (list, tuple, np.ndarray)) and len(bounds) == 2
    return listed and all(isinstance(end, Real) for end in bounds)


def _entries(bounds: GivenBounds) -> tuple[tuple[float, float] | str, ...]:
    """Pairs, and "0/1" as it is."""
    if not isinstance(bounds, (list, tuple)):
        return _pairs(bounds)
    told = [isinstance(one, str) and one == ZERO_ONE for one in bounds]
    filled = [(0.0, 1.0) if yes else one for yes, one in zip(told, bounds, strict=True)]
    pairs = _pairs(filled)
    return tuple(ZERO_ONE if yes else pair for yes, pair in zip(told, pairs, strict=True))


def _pairs(bounds: ArrayLike) -> tuple[tuple[float, float], ...]:
    try:
        found = real_array("bounds", bounds, shape=(None, 2), finite=False)
    except ValueError as error:
        raise ValueError(f"{error}; bounds are pairs (low, high), one per column") from None
    low, high = found.T
    with np.errstate(over="ignore", invalid="ignore"):
        endless, close = ~np.isfinite(high - low), ~separated(low, high)
    for wrong, why in (
        (~np.isfinite(found).all(axis=1), "must be finite"),
        (low > high, "must not decrease"),
        (endless, "must have a finite distance"),
        (close & (low < high), f"must not be {TOO_CLOSE}"),
    ):
        if wrong.any():
            k = int(np.argmax(wrong))
            raise ValueError(f"bounds {why}; pair {k} is {tuple(found[k].tolist())}")
    return tuple((low, high) for low, high in found.tolist())


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _named(entry: object) -> bool:
    return isinstance(entry, tuple) and isinstance(entry[0], str)


Mechanism: TypeAlias = Literal["objective", "statistics", "auto"]
#: What is released before the fit.
_BEFORE = (
    "noisy counts of the magnitudes of the columns",
    "noisy sums of the columns",
    "noisy sums of products of covariates and labels",
)


@register_kind
@dataclass(frozen=True)
class RecordDP(Formal):
    """(ε, δ)-differential privacy of whole records, by objective perturbation.

    Two data sets are neighbours if one is the other with one record replaced by an empty one,
    which contributes nothing, or by any other one; the number of rows is public. For such data sets
    D, D' and any set of outputs A, P(A | D) ≤ e^ε P(A | D') + δ. Only the coefficients at one λ are
    released, and a fit at another λ is another release.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta : float
        δ in (0, 1), well below one over the number of rows.
    bounds : array_like of shape (N, 2), mapping of column names to (low, high), or "private"
        Smallest and largest value of each column; one pair (low, high) is for all columns. They
        must come from public knowledge, such as a data dictionary, not from the data.
        Values outside are clipped without notice, and a missing one (NaN) counts as the middle.
        Say ``"0/1"`` in place of a pair for a column of zeros and ones: its bounds are 0 and 1, and
        it is measured from zero, so that a rare level moves few rows instead of nearly all. For
        numbers that fill the range from 0 to 1 the pair is better.
        With ``"private"``, ranges are found in the data with noise, at a share of the budget; a
        column whose range is lost in the noise has no coefficient.
    y_bounds : (float, float) or "private"
        Smallest and largest label, likewise. A record whose label is missing is an empty one. With
        ``"private"`` the range is found in the labels with noise, for a part of the budget.
    kappa : float, optional
        The largest residual that is not clipped, as a part of the range of the labels, after rows
        were shrunk with their labels. The noise grows with it. By default 0.05, and more where
        ε times the number of rows per column is above 100.
    t : float, optional
        The ridge is R²/t: a larger t shrinks coefficients less and needs more noise. By default
        0.19·(e^ε − 1) up to ε = 1, and in proportion to ε^(4/3) beyond; for
        `PrivateLogisticLasso` half of that, and more where rows are many.
    scales : "private", optional
        Find ranges, centres and scales of the columns in the data with noise, within the bounds,
        at a share of the budget. It pays where bounds may be far too wide and rows are many.
    shape : "private" or array_like of shape (K, N), optional
        Let noise and ridge follow the correlations of the columns: those of public rows of the
        same columns, which cost nothing, or those of the data with noise, at a share of the budget,
        which also gives standard errors. It helps where columns are strongly correlated.
    share : float
        Part of the budget for what is found in the data before the fit: the squared sensitivity of
        these releases relative to that of a Gaussian mechanism with the whole budget. Nothing is
        spent unless something is ``"private"``.
    mechanism : {"objective", "statistics", "auto"}
        Release the minimiser of a perturbed objective, or noisy sums of products of covariates and
        labels, from which any λ is solved at no further cost. The sums need many more rows.
        ``"auto"`` takes them where the loss of R² that is predicted from the numbers of rows and
        columns and the budget is below 0.01.
    level : bool, optional
        Whether a noisy mean of the residuals corrects the intercept of a perturbed fit. Clipped
        residuals have their median at zero, and the mean differs where labels are skewed, or are
        zeros and ones. It takes a hundredth of the squared sensitivity that the budget allows. By
        default it is done where the budget and the number of rows leave so little noise in the
        mean that it helps; see `direct_level`.
    neighbours : {"emptied", "replaced"}
        Whether one record is emptied, or becomes any other one, which takes more noise for the
        same ε and δ.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (2000, 3)) * [1.0, 10.0, 1000.0]
    >>> y = 0.5 * X[:, 0] + 0.03 * X[:, 1] + 0.05 * rng.standard_normal(2000)
    >>> privacy = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1), (0, 10), (0, 1000)], y_bounds=(0, 1))
    >>> est = pv.PrivateLasso(privacy=privacy, random_state=0).fit(X, y)
    >>> est.score(X, y) > 0.8, est.guarantee_.kind
    (True, 'record-dp')
    """

    epsilon: float
    delta: float
    bounds: GivenBounds = field(default=None, repr=False)
    y_bounds: LabelBounds = (0.0, 0.0)
    kappa: float | None = None
    t: float | None = None
    scales: Literal["private"] | None = None
    shape: ArrayLike | None = field(default=None, repr=False)
    share: float = 0.2
    mechanism: Mechanism = "objective"
    level: bool | None = None
    neighbours: Relation = "emptied"

    protects_records: ClassVar[bool] = True
    public_covariates: ClassVar[bool] = False
    covers_release: ClassVar[bool] = False
    one: ClassVar[Literal["label", "record"]] = "record"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", checked_bounds(self.bounds))
        if self.y_bounds == (0.0, 0.0):
            raise ValueError(
                "RecordDP needs y_bounds=(low, high), the smallest and largest label, from public "
                "knowledge: labels outside are clipped"
            )
        self._check()
        check_budget(self.epsilon, self.delta)
        if self.scales not in (None, PRIVATE):
            raise ValueError(f"scales must be 'private' or None, not {self.scales!r}")
        object.__setattr__(self, "shape", _checked_shape(self.shape))
        if self.shape is not None and self.mechanism != "objective":
            raise ValueError("shape belongs to mechanism='objective'; statistics need none")
        if self.mechanism not in get_args(Mechanism):
            known = ", ".join(map(repr, get_args(Mechanism)))
            raise ValueError(f"mechanism must be one of {known}, not {self.mechanism!r}")
        share = positive_float("share", self.share)
        if share >= 1.0:
            raise ValueError(f"share is a part of the budget, below 1, not {share!r}")
        object.__setattr__(self, "share", share)

    @property
    def released_before(self) -> tuple[str, ...]:
        """What is released before the fit; all of it has the same sensitivity."""
        scales = self.scales == PRIVATE
        asked = (scales or self.bounds == PRIVATE, scales, self.shape == PRIVATE)
        return tuple(what for what, wanted in zip(_BEFORE, asked, strict=True) if wanted)

    @property
    def before(self) -> tuple[tuple[str, ...], float]:
        """What is released, and `share`."""
        return self.released_before, self.share

    @property
    def mu_before(self) -> float:
        """Sensitivity of all releases before the fit together; zero if there are none."""
        if not self.released_before:
            return 0.0
        return math.sqrt(self.share) * self.mu

    @property
    def mu_of_each(self) -> float:
        """Sensitivity of each release before the fit."""
        return self.mu_before / math.sqrt(max(len(self.released_before), 1)) * (1.0 - 1e-15)

    def column_bounds(self, n_columns: int, names: Sequence[str] | None = None) -> np.ndarray:
        """Bounds of the columns, of shape (N, 2), by name where they were given by name.

        >>> bounds = {"b": "0/1", "a": (2, 5)}
        >>> RecordDP(1.0, 1e-6, bounds, (0, 1)).column_bounds(2, ["a", "b"]).tolist()
        [[2.0, 5.0], [0.0, 1.0]]
        """
        if self.bounds == PRIVATE:
            raise ValueError("bounds='private' are found in the data; there are none beforehand")
        found = _of_columns(self.bounds, n_columns, names)
        pairs = [(0.0, 1.0) if one == ZERO_ONE else one for one in found]
        return np.array(pairs, dtype=np.float64).reshape(-1, 2)

    def indicators(self, n_columns: int, names: Sequence[str] | None = None) -> np.ndarray | None:
        """Which columns were said to be of zeros and ones; None if none was."""
        if self.bounds == PRIVATE:
            return None
        entries = _of_columns(self.bounds, n_columns, names)
        found = np.array([one == ZERO_ONE for one in entries])
        return found if found.any() else None

    def for_classes(self) -> RecordDP:
        """Refuse what a logistic regression on labels 0 and 1 does not have."""
        check_coded(self.y_bounds)
        given = {
            "kappa": self.kappa is not None,
            "shape": self.shape is not None,
            "mechanism": self.mechanism != "objective",
        }
        for name, wrong in given.items():
            if wrong:
                raise ValueError(
                    f"logistic regression on records has no choice of {name}: the slope of its "
                    "loss is at most 1, and the objective is perturbed; leave it out"
                )
        return self

    def guarantee(
        self, terms: Terms, losses: Sequence[Loss] | None = None, released: Sequence[str] = ()
    ) -> Guarantee:
        """State record-level differential privacy of what was asked, and of all that follows."""
        known = (("columns", self.bounds != PRIVATE), ("labels", not self.finds_range))
        of = " and of the ".join(name for name, public in known if public)
        given = [f"the bounds of the {of}"] if of else []
        if self.shape is not None and self.shape != PRIVATE:
            given.append("the rows that the shape comes from")
        at_one_lam = any(not isinstance(loss, GaussianLoss) for loss in losses or ())
        settings = "and all settings" if given else "all settings"
        given.append("λ and all settings" if at_one_lam else settings)
        assumptions = (
            f"{', '.join(given)} of the fit were chosen without looking at the data",
            "the number of rows and the names of the columns are public",
            PREPARED,
        )
        return self._stated(terms, losses, assumptions, released)

    def check_release_use(self, what: str) -> None:
        """Refuse what needs a release, unless statistics are released."""
        if self.mechanism == "objective":
            super().check_release_use(what)

    def composition(self, mu: float | None) -> str:
        """Each fit is a release of its own."""
        if self.mechanism == "statistics":
            return "Further fits on the same records add to the loss; a ledger keeps count of them."
        return (
            "Further fits on the same records, at another λ too, add to the loss; a ledger keeps "
            "count of them."
        )

    def after_failure(self, kept: str) -> str:
        """Nothing was published."""
        return (
            "Nothing of this fit is published, but its noise has been drawn, so count its budget "
            "as spent."
        )


def _checked_shape(shape: ArrayLike | None) -> tuple[tuple[float, ...], ...] | str | None:
    """Public rows as values that can be compared and hashed."""
    if shape is None or (isinstance(shape, str) and shape == PRIVATE):
        return shape
    if isinstance(shape, str):
        raise ValueError(f"shape must be 'private', public rows or None, not {shape!r}")
    return tuple(tuple(row) for row in real_array("shape", shape, shape=(None, None)).tolist())
