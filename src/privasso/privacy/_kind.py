"""The base class of all kinds of privacy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import Field, dataclass, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias, TypeVar

from numpy.typing import ArrayLike

from privasso._tuned import LABEL_WIDTH
from privasso._validation import label_bounds, positive_float, probability, squarable
from privasso.accounting import GaussianLoss, Loss, sensitivity_for
from privasso.model import Model
from privasso.noise import Noise
from privasso.privacy._guarantee import Guarantee, alone, once
from privasso.queries import EMPTIED, Neighbours, Relation
from privasso.scales import ScaleLaw

#: Where a noise design finds the scales of the columns: the data, prior scales, or a law.
Scales: TypeAlias = ArrayLike | ScaleLaw | Literal["data"] | None

#: Found in the data with noise, at a part of the budget.
PRIVATE = "private"
KNOWN_SEED = "nobody knows the fixed random state that the noise came from"
UNKNOWN_SEED = (
    "nobody can predict the noise, which came from the operating system's cryptographic generator"
)


@dataclass(frozen=True)
class Terms:
    """What a privacy statement depends on besides the kind of privacy.

    Attributes
    ----------
    fit_intercept : bool
        Whether the label sum is released too.
    seeded : bool
        Whether the noise comes from a fixed random state.
    n_rows : int
        Number of labels.
    scales : None, "data", array_like or ScaleLaw
        Where the noise design finds the scales of the columns.
    noise : NoiseDesign, Shaped or None
        The noise at the level that is used.
    model : Model or None
        The model that average-case numbers refer to.
    lam : float or None
        λ, where it is known beforehand.

    Examples
    --------
    >>> import privasso as pv
    >>> terms = Terms(fit_intercept=True, seeded=False, n_rows=50)
    >>> pv.LabelDP(1.0, 1e-3, (0, 1)).guarantee(terms)["n_rows"]
    50.0
    """

    fit_intercept: bool
    seeded: bool
    n_rows: int
    scales: Scales = None
    noise: Noise | None = None
    model: Model | None = None
    lam: float | None = None

    @property
    def entropy(self) -> str:
        """The assumption about the source of the noise."""
        return KNOWN_SEED if self.seeded else UNKNOWN_SEED


#: Low and high of the labels, or what says that they are found with noise; at first a list too.
LabelBounds: TypeAlias = Any


class Privacy(ABC):
    """What is protected and how much; all that depends on the kind of privacy is a method here.

    A new kind is a frozen dataclass in a file of its own that writes the methods below and
    registers itself. A subclass of a kind is not one: it could change the noise and keep the claim.
    """

    #: Whether the guarantee bounds a privacy loss, which composes and can be charged to a ledger.
    formal: ClassVar[bool]
    #: Whether whole records are protected: all that is known of the columns is given beforehand.
    protects_records: ClassVar[bool] = False
    #: Whether covariates are public, so that facts about single columns may be shown.
    public_covariates: ClassVar[bool]
    #: Whether the guarantee covers the release itself, so that it may be kept and solved again.
    covers_release: ClassVar[bool]
    #: Whether λ may be left to the fit, which takes it from the release or from public numbers.
    automatic_lam: ClassVar[bool]
    #: What is equal when two designs are compared under this privacy.
    compared_at: ClassVar[str]

    @property
    @abstractmethod
    def label_width(self) -> float | None:
        """Distance between the bounds of the labels, if they have any."""

    @property
    def label_deviation(self) -> float | None:
        """A standard deviation to expect of the labels without reading any, if one is known.

        Labels that fill their bounds vary by about a sixth of the width.
        """
        return None if self.label_width is None else self.label_width / LABEL_WIDTH

    @property
    def before(self) -> tuple[tuple[str, ...], float]:
        """What is released about the columns before a fit, and the part of the budget for it."""
        return (), 0.0

    @abstractmethod
    def guarantee(
        self, terms: Terms, losses: Sequence[Loss] | None = None, released: Sequence[str] = ()
    ) -> Guarantee:
        """State what holds for questions with these losses, and what is released."""

    @abstractmethod
    def composition(self, mu: float | None) -> str | None:
        """Say how the loss of several such releases adds up, if there is anything to say."""

    def for_classes(self) -> Privacy:
        """Return the kind as a logistic regression on labels 0 and 1 uses it, or refuse."""
        raise ValueError(
            f"{type(self).__name__} is not for labels of two classes; use LabelDP(epsilon, delta, "
            "y_bounds=(0, 1)), or RecordDP to protect covariates too"
        )

    @abstractmethod
    def after_failure(self, kept: str) -> str:
        """Say what happens to the release when a solve fails after the noise was drawn.

        `kept` says where the release is kept and how to use it.
        """

    def check_release_use(self, what: str) -> None:
        """Refuse what needs a release that the guarantee covers."""
        if not self.covers_release:
            raise ValueError(
                f"{what} uses the release itself, which {type(self).__name__} does not cover: "
                "only the coefficients at one λ chosen beforehand may be published; "
                "use LabelDP, or state_evolution to choose λ"
            )


class Formal(Privacy):
    """(ε, δ)-differential privacy where labels have bounds; kinds declare these as their fields."""

    formal: ClassVar[bool] = True
    automatic_lam: ClassVar[bool] = True
    compared_at: ClassVar[str] = "guarantee"
    #: What data sets differ in.
    one: ClassVar[Literal["label", "record"]]

    __dataclass_fields__: ClassVar[dict[str, Field]]
    epsilon: float
    delta: float
    y_bounds: LabelBounds
    kappa: float | None
    t: float | None
    level: bool | None
    neighbours: Relation

    def _check(self) -> None:
        """Refuse numbers outside of their ranges, and keep the others as floats."""
        found: dict[str, object] = {"epsilon": positive_float("epsilon", self.epsilon)}
        found["delta"] = probability("delta", self.delta)
        found["y_bounds"] = self.y_bounds
        if not self.finds_range:
            found["y_bounds"] = label_bounds(self.y_bounds)
        for name in ("kappa", "t"):
            given = getattr(self, name)
            if given is not None:
                found[name] = squarable(name, positive_float(name, given))
        for name, value in found.items():
            object.__setattr__(self, name, value)
        if self.level is not None and not isinstance(self.level, bool):
            raise ValueError(f"level must be True, False or None, not {self.level!r}")
        if self.neighbours not in ("emptied", "replaced"):
            raise ValueError(f"neighbours must be 'emptied' or 'replaced', not {self.neighbours!r}")

    @property
    def pair(self) -> Neighbours:
        """How data sets differ."""
        return Neighbours(self.one, self.neighbours)

    @property
    def mu_before(self) -> float:
        """Sensitivity of all releases before the fit together; zero if there are none."""
        return 0.0

    @property
    def mu(self) -> float:
        """The largest Mahalanobis sensitivity that (ε, δ) allows."""
        return sensitivity_for(self.epsilon, self.delta)

    @property
    def finds_range(self) -> bool:
        """Whether the bounds of the labels are found in the labels, with noise."""
        return isinstance(self.y_bounds, str) and self.y_bounds == PRIVATE

    def within(self, epsilon: float) -> Self:
        """The same for a part of the budget, and labels that are parts of a range."""
        bounds = (-0.5, 0.5) if self.finds_range else self.y_bounds
        return replace(self, epsilon=epsilon, y_bounds=bounds)

    @property
    def label_width(self) -> float:
        """High minus low; where this is found in the labels it is the unit of all plans."""
        return 1.0 if self.finds_range else self.y_bounds[1] - self.y_bounds[0]

    def _stated(
        self,
        terms: Terms,
        losses: Sequence[Loss] | None,
        assumptions: Sequence[str],
        released: Sequence[str],
    ) -> Guarantee:
        """The guarantee of the budget; losses that exceed it are refused.

        By default it is stated for one Gaussian mechanism that has the whole budget.
        """
        ends = () if self.finds_range else self.y_bounds
        bounds = dict(zip(("y_low", "y_high"), ends, strict=False))
        numbers = {"delta": self.delta, "epsilon": self.epsilon, "n_rows": float(terms.n_rows)}
        return Guarantee(
            self.pair,
            tuple({**numbers, **bounds}.items()),
            (GaussianLoss(self.mu),) if losses is None else tuple(losses),
            assumptions=(*assumptions, once(self.pair), alone(self.pair), terms.entropy),
            released=tuple(dict.fromkeys(released)),
            seeded=terms.seeded,
        )


@dataclass(frozen=True)
class RecordBudget:
    """(ε, δ)-differential privacy of whole records: one is emptied, or the reverse.

    It says how much noise objective perturbation needs, and no more: bounds of the columns and of
    the labels come with the data.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta : float
        δ in (0, 1), well below one over the number of rows.

    Examples
    --------
    >>> import privasso as pv
    >>> budget = pv.privacy.RecordBudget(epsilon=1.0, delta=1e-6)
    >>> round(pv.optimal_design(pv.Model(alpha=10.0), pv.Budget(budget)).t, 1)
    0.5
    """

    epsilon: float
    delta: float

    public_covariates: ClassVar[bool] = False
    mu_before: ClassVar[float] = 0.0
    label_width: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_float("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    @property
    def pair(self) -> Neighbours:
        """How data sets differ."""
        return EMPTIED


#: What formal noise is computed from.
FormalBudget: TypeAlias = Formal | RecordBudget


_Kind = TypeVar("_Kind", bound=type[Privacy])
#: The kinds whose guarantees have been proved.
_KINDS: set[type[Privacy]] = set()


def register_kind(kind: _Kind) -> _Kind:
    """Add a kind of privacy; a decorator."""
    _KINDS.add(kind)
    return kind


def check_kind(privacy: object) -> None:
    """Refuse what is no kind of privacy, and subclasses, which could claim what does not hold.

    >>> import privasso as pv
    >>> class Bolder(pv.LabelDP): ...
    >>> check_kind(Bolder(1.0, 1e-6, (0, 1)))
    Traceback (most recent call last):
    ...
    ValueError: privacy must be exactly LabelDP, OnAverage or RecordDP, not another kind, Bolder
    """
    if type(privacy) in _KINDS:
        return
    name = type(privacy).__name__
    if isinstance(privacy, Privacy):
        *first, last = sorted(kind.__name__ for kind in _KINDS)
        known = f"{', '.join(first)} or {last}"
        raise ValueError(f"privacy must be exactly {known}, not another kind, {name}")
    raise ValueError(
        "privacy must say what to protect: LabelDP(epsilon, delta, y_bounds) for a formal "
        "guarantee of the labels, RecordDP(epsilon, delta, bounds, y_bounds) for one of whole "
        f"records, or OnAverage(sigma) for noise without a guarantee; got {name}"
    )
