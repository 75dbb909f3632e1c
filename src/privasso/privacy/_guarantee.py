"""What may be claimed about a release and under which assumptions, as a value."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from privasso._documents import DocumentError, Fields
from privasso._text import escaped
from privasso._types import Json
from privasso._validation import integer, real_float
from privasso.accounting import (
    InexactLoss,
    Loss,
    ObjectiveLoss,
    delta_together,
    losses_from_list,
    losses_to_list,
    together,
)
from privasso.privacy._words import average_claim, differing, formal_claim, rounded_up
from privasso.queries import Neighbours

#: Numbers of formal statements, and of those about the average.
_FORMAL, _BOUNDS = {"epsilon", "delta", "n_rows"}, {"y_low", "y_high"}
_AVERAGE = {"sigma", "onavekl_joint", "onavekl_paper"}
#: How often each person may be among the data, for a unit.
_ONCE, _OFTEN = "each person contributes one {}", "each person contributes at most {} {}s"
_ALONE = "the same {}s are not used in another release, whose loss would add to this one"
_SEEDED = (
    "the noise came from a fixed random state, and anyone who knows the state can remove it (fit "
    "again without a seed before publishing)"
)
#: An assumption about private columns, what is said in its place where it is known to be false,
#: and the reason not to publish anything then.
PREPARED = (
    "the columns were prepared by rules that do not depend on the data, and that they hold numbers "
    "is public"
)
_LEARNT = (
    "what prepared the columns would be the same without any one record: it was learnt from the "
    "records"
)
_NOT_COVERED = (
    "the columns were prepared by what was learnt from the records, which the guarantee does not "
    "cover (prepare them by public rules, such as a TableEncoder with a data dictionary)"
)
#: The largest ε of a guarantee that is fit for release.
LARGEST_EPSILON = 20.0

Kind = Literal["label-dp", "record-dp", "average-case", "none"]


@dataclass(frozen=True)
class Guarantee:
    """What is claimed about a release, under which assumptions, about which objects.

    A formal guarantee holds for neighbouring data sets, and follows from the losses of all that was
    asked about the data. ``str`` gives plain sentences; `compose` says what several guarantees mean
    together, and `group` what one means for groups.

    Attributes
    ----------
    neighbours : Neighbours or None
        Which data sets are hard to tell apart; None where nothing is claimed for any one person.
    parameters : tuple of (str, float)
        The numbers of the statement, sorted by name; ``guarantee["delta"]`` looks one up.
    losses : tuple of Loss
        The losses of the questions that were asked.
    assumptions : tuple of str
        Sentences without which the statement is false.
    released : tuple of str
        What the statement covers.
    seeded : bool
        Whether the noise came from a fixed random state.
    size : int
        Data sets differ in up to so many labels or records.

    Examples
    --------
    >>> from privasso import Guarantee
    >>> nothing = Guarantee(None, released=("coefficients",))
    >>> print(nothing)
    No privacy: the model was fitted without noise.
    Released: coefficients.
    NOT FOR RELEASE: there is no formal guarantee for any one person.
    >>> Guarantee.from_dict(nothing.to_dict()) == nothing
    True
    """

    neighbours: Neighbours | None
    parameters: tuple[tuple[str, float], ...] = ()
    losses: tuple[Loss, ...] = ()
    assumptions: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    seeded: bool = False
    size: int = 1

    def __post_init__(self) -> None:
        pairs = tuple(sorted((str(k), real_float(f"parameter {k}", x)) for k, x in self.parameters))
        object.__setattr__(self, "parameters", pairs)
        names = {name for name, _ in pairs}
        if len(names) != len(pairs):
            raise ValueError("parameters has a name twice")
        known = _AVERAGE if self.neighbours is None else _FORMAL | _BOUNDS
        for name in sorted(names - known):
            raise ValueError(f"a guarantee of kind {self.kind!r} has no parameter {name!r}")
        for name in sorted(self._needed(names) - names):
            raise ValueError(f"a guarantee of kind {self.kind!r} needs the parameter {name!r}")
        if self.neighbours is not None:
            self._check(self.neighbours)
        elif self.losses:
            raise ValueError("losses are those of neighbouring data sets, and there are none")

    def _needed(self, names: set[str]) -> set[str]:
        if self.neighbours is None:
            return {"sigma"} if names else set()
        return _FORMAL | (_BOUNDS if names & _BOUNDS else set())

    def _check(self, neighbours: Neighbours) -> None:
        """Refuse numbers that make no sense, and losses that are larger than what is stated."""
        where = f"a {self.kind} guarantee"
        if self["epsilon"] <= 0.0 or not 0.0 < self["delta"] < 1.0:
            raise ValueError(f"{where} needs epsilon > 0 and 0 < delta < 1")
        if self["n_rows"] < 1.0 or not self["n_rows"].is_integer():
            raise ValueError(f"{where} needs a whole number of rows, n_rows")
        if self.label_bounds is not None and not self["y_low"] < self["y_high"]:
            raise ValueError(f"{where} needs y_low < y_high")
        integer("size", self.size, minimum=1)
        for loss in self.losses:
            ideal = loss.ideal if isinstance(loss, InexactLoss) else loss
            if isinstance(ideal, ObjectiveLoss) and ideal.neighbours != neighbours.of_objective:
                raise ValueError(f"{where} has a loss for other neighbours than its own")
        if not self.losses:
            raise ValueError(f"{where} needs the losses that it follows from")
        if not delta_together(self.losses, self.size, self["epsilon"]) <= self["delta"]:
            raise ValueError(f"{where} needs losses that are small enough for its ε and δ")

    def __getitem__(self, name: str) -> float:
        return dict(self.parameters)[name]

    @property
    def kind(self) -> Kind:
        """``"label-dp"``, ``"record-dp"``, ``"average-case"`` or ``"none"``."""
        if self.neighbours is None:
            return "average-case" if self.parameters else "none"
        return "label-dp" if self.neighbours.unit == "label" else "record-dp"

    @property
    def adjacency(self) -> str:
        """What neighbouring data sets differ in; empty where nothing is claimed."""
        if self.neighbours is not None:
            return differing(self.neighbours, self.size)
        average = "one record replaced by another of the same law, on average over both"
        return average if self.parameters else ""

    @property
    def claim(self) -> str:
        """The claim itself, in words."""
        numbers = dict(self.parameters)
        if self.neighbours is None:
            return average_claim(numbers)
        return formal_claim(self.neighbours, self.size, numbers)

    @property
    def loss(self) -> Loss | None:
        """The privacy loss that the guarantee bounds; None where it bounds nothing."""
        return together(self.losses, self.size) if self.losses else None

    @property
    def formal(self) -> bool:
        """Whether a loss is bounded for every person, whatever the data are."""
        return self.neighbours is not None

    @property
    def label_bounds(self) -> tuple[float, float] | None:
        """Bounds that labels were clipped to, or None.

        >>> import privasso as pv
        >>> from privasso.privacy import Terms
        >>> terms = Terms(fit_intercept=True, seeded=False, n_rows=1000)
        >>> pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1)).guarantee(terms).label_bounds
        (0.0, 1.0)
        """
        known = dict(self.parameters)
        return (known["y_low"], known["y_high"]) if known.keys() >= _BOUNDS else None

    def with_bounds(self, low: float, high: float) -> Guarantee:
        """The same with bounds of the labels that were found with noise."""
        found = {**dict(self.parameters), "y_low": low, "y_high": high}
        return replace(self, parameters=tuple(found.items()))

    @property
    def reservations(self) -> tuple[str, ...]:
        """Reasons why nothing of this fit should be published on the strength of the statement."""
        if not self.formal:
            seed = (_SEEDED,) if self.seeded else ()
            return ("there is no formal guarantee for any one person", *seed)
        found = [_SEEDED] if self.seeded else []
        found += [_NOT_COVERED] if _LEARNT in self.assumptions else []
        epsilon, delta, n_rows = self["epsilon"], self["delta"], self["n_rows"]
        if epsilon > LARGEST_EPSILON:
            found.append(
                f"ε = {rounded_up(epsilon)} is above {LARGEST_EPSILON:g}, which protects next to "
                "nothing"
            )
        if delta * n_rows >= 1.0:
            found.append(
                f"δ = {rounded_up(delta)} is not below one over the number of rows ({n_rows:.0f}), "
                "and so large a δ allows a label to be published as it is"
            )
        return tuple(found)

    @property
    def for_release(self) -> bool:
        """Whether the statement is formal, its numbers mean something, and nobody knows the noise.

        The noise must come from the operating system, ε must be at most 20, δ below one over the
        number of rows, and private columns must not be known to be prepared by what was learnt from
        them.
        """
        return not self.reservations

    @property
    def warning(self) -> str | None:
        """Why the release must not be published, or None."""
        return f"NOT FOR RELEASE: {'; '.join(self.reservations)}." if self.reservations else None

    def group(self, k: int) -> Guarantee:
        """Return what holds for groups of k, such as a person who contributed k labels; same δ.

        Examples
        --------
        >>> import privasso as pv
        >>> from privasso.privacy import Terms
        >>> terms = Terms(fit_intercept=True, seeded=False, n_rows=1000)
        >>> one = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1)).guarantee(terms)
        >>> round(one.group(2)["epsilon"], 3), one.group(2).adjacency
        (2.123, 'up to 2 entries')
        """
        if self.neighbours is None:
            raise ValueError(f"a guarantee of kind {self.kind!r} cannot be stated for groups")
        k = integer("k", k, minimum=1)
        if k == 1:
            return self
        if self.size != 1:
            raise ValueError("the guarantee is for groups already; group the one for single people")
        epsilon = together(self.losses, k).epsilon(self["delta"])
        if not math.isfinite(epsilon):
            raise ValueError(f"no finite ε holds for groups of {k} at the δ of this guarantee")
        unit = self.neighbours.unit
        often = {_ONCE.format(unit): _OFTEN.format(k, unit)}
        return replace(
            self,
            parameters=tuple({**dict(self.parameters), "epsilon": epsilon}.items()),
            assumptions=tuple(often.get(one, one) for one in self.assumptions),
            size=k,
        )

    def on_learnt_columns(self) -> Guarantee:
        """Return what holds where private columns were prepared by what was learnt from them.

        Examples
        --------
        >>> import privasso as pv
        >>> from privasso.fit import FitOptions, plan_for
        >>> privacy = pv.RecordDP(1.0, 1e-6, bounds=[(-3, 3)], y_bounds=(0, 1))
        >>> scaled = plan_for([[0.0]] * 500, FitOptions(privacy)).guarantee.on_learnt_columns()
        >>> scaled.for_release
        False
        """
        said = (_LEARNT if one == PREPARED else one for one in self.assumptions)
        return replace(self, assumptions=tuple(said))

    def compose(self, *others: Guarantee, delta: float | None = None) -> Guarantee:
        """Return what holds for this release and others of the same data; see `privacy.compose`.

        Examples
        --------
        >>> import privasso as pv
        >>> from privasso.privacy import Terms
        >>> terms = Terms(fit_intercept=True, seeded=False, n_rows=1000)
        >>> one = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1)).guarantee(terms)
        >>> round(one.compose(one, one, one)["epsilon"], 3)
        2.123
        """
        from privasso.privacy._composition import compose

        return compose([self, *others], delta)

    def __str__(self) -> str:
        lines = [self.claim]
        lines += [f"Released: {escaped(', '.join(self.released))}."] if self.released else []
        if self.assumptions:
            lines.append("This holds provided that:")
            lines += [f"- {escaped(sentence)}" for sentence in self.assumptions]
        lines += [] if self.warning is None else [self.warning]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Json]:
        """Plain values for JSON."""
        formal = {}
        if self.neighbours is not None:
            formal = {
                "neighbours": self.neighbours.relation,
                "size": self.size,
                "losses": losses_to_list(self.losses),
            }
        return {
            "kind": self.kind,
            "parameters": dict(self.parameters),
            **formal,
            "assumptions": list(self.assumptions),
            "released": list(self.released),
            "seeded": self.seeded,
            "for_release": self.for_release,
        }

    @classmethod
    def from_dict(cls, values: object) -> Guarantee:
        """Rebuild what `to_dict` wrote; anything else raises `DocumentError`."""
        fields = Fields(values, "the guarantee")
        kind, numbers = fields.text("kind"), fields.inner("parameters")
        neighbours, size, losses = None, 1, ()
        if kind in ("label-dp", "record-dp"):
            relation = fields.text("neighbours")
            if relation not in ("emptied", "replaced"):
                raise DocumentError(f"neighbours must be emptied or replaced, not {relation!r:.60}")
            neighbours = Neighbours("label" if kind == "label-dp" else "record", relation)
            size = fields.whole("size", 1, 10**6)
            losses = losses_from_list(fields.take("losses"))
        elif kind not in ("average-case", "none"):
            raise DocumentError(f"a guarantee has the unknown kind {kind!r:.60}")
        try:
            guarantee = cls(
                neighbours,
                tuple((name, numbers.number(name)) for name in numbers.names()),
                losses,
                assumptions=tuple(fields.texts("assumptions")),
                released=tuple(fields.texts("released")),
                seeded=fields.flag("seeded"),
                size=size,
            )
        except DocumentError:
            raise
        except ValueError as error:
            raise DocumentError(str(error)) from None
        if guarantee.kind != kind:
            raise DocumentError(f"a guarantee of kind {kind!r} needs other parameters")
        if fields.flag("for_release") != guarantee.for_release:
            raise DocumentError("for_release is not what follows from the rest of the guarantee")
        fields.end()
        return guarantee


def once(neighbours: Neighbours) -> str:
    """The assumption that nobody is among the data more than once."""
    return _ONCE.format(neighbours.unit)


def alone(neighbours: Neighbours) -> str:
    """The assumption that the same labels, or records, are not used in another release."""
    return _ALONE.format(neighbours.unit)
