"""What may be claimed about a release and under which assumptions, as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privasso._documents import DocumentError, Fields
from privasso._text import escaped
from privasso._validation import integer, real_float
from privasso.accounting import Loss
from privasso.privacy._numbers import rounded_up

if TYPE_CHECKING:
    from privasso.privacy._kind import Privacy

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


@dataclass(frozen=True)
class Claim:
    """The parameters of a kind of guarantee, and its sentence.

    Attributes
    ----------
    kind : str
        Name of the kind, as written to files.
    required, optional : tuple of str
        Names of its parameters.
    sentence : callable
        The claim in words.
    check : callable
        Raises ValueError for parameters that make no sense.
    privacy : callable or None
        Rebuilds the privacy value from the parameters, where a release of the kind may be kept.
    loss : callable or None
        The privacy loss that the parameters bound; None for kinds that bound nothing. A kind with
        a loss is formal, and has the parameters epsilon, delta and n_rows.
    group : callable or None
        The guarantee for groups of k, where it can be stated.
    context : tuple of str
        Parameters that must be equal in guarantees that are composed.
    """

    kind: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    sentence: Callable[[Guarantee], str]
    check: Callable[[Guarantee], None] = lambda guarantee: None
    privacy: Callable[[Guarantee], Privacy] | None = None
    loss: Callable[[Guarantee], Loss] | None = None
    group: Callable[[Guarantee, int], Guarantee] | None = None
    context: tuple[str, ...] = ()


#: The kinds that exist; each file of a kind adds its own.
CLAIMS: dict[str, Claim] = {}


def register(claim: Claim) -> Claim:
    """Add a kind of guarantee."""
    CLAIMS[claim.kind] = claim
    return claim


def check_budget(guarantee: Guarantee) -> None:
    """Refuse ε, δ and a number of rows that make no sense."""
    where = f"a {guarantee.kind} guarantee"
    if guarantee["epsilon"] <= 0.0 or not 0.0 < guarantee["delta"] < 1.0:
        raise ValueError(f"{where} needs epsilon > 0 and 0 < delta < 1")
    if guarantee["n_rows"] < 1.0 or not guarantee["n_rows"].is_integer():
        raise ValueError(f"{where} needs a whole number of rows, n_rows")


@dataclass(frozen=True)
class Guarantee:
    """What is claimed about a release, under which assumptions, about which objects.

    ``str`` gives plain sentences. Only formal kinds carry an ε and a privacy loss; `compose` says
    what several guarantees mean together, and `group` what one means for groups.

    Attributes
    ----------
    kind : str
        ``"label-dp"``, ``"composed"``, ``"average-case"`` or ``"none"``.
    parameters : tuple of (str, float)
        The numbers of the statement, sorted by name; ``guarantee["delta"]`` looks one up.
    adjacency : str
        Which data sets count as neighbours; empty where nothing is claimed.
    assumptions : tuple of str
        Sentences without which the statement is false.
    released : tuple of str
        What the statement covers.
    seeded : bool
        Whether the noise came from a fixed random state.

    Examples
    --------
    >>> from privasso import Guarantee
    >>> nothing = Guarantee("none", (), "", (), ("coefficients",), seeded=False)
    >>> print(nothing)
    No privacy: the model was fitted without noise.
    Released: coefficients.
    NOT FOR RELEASE: there is no formal guarantee for any one person.
    >>> Guarantee.from_dict(nothing.to_dict()) == nothing
    True
    """

    kind: str
    parameters: tuple[tuple[str, float], ...]
    adjacency: str
    assumptions: tuple[str, ...]
    released: tuple[str, ...]
    seeded: bool

    def __post_init__(self) -> None:
        if self.kind not in CLAIMS:
            raise ValueError(f"kind must be one of {', '.join(CLAIMS)}, not {self.kind!r}")
        pairs = tuple(sorted((str(k), real_float(f"parameter {k}", x)) for k, x in self.parameters))
        object.__setattr__(self, "parameters", pairs)
        names = tuple(name for name, _ in pairs)
        if len(set(names)) != len(names):
            raise ValueError("parameters has a name twice")
        claim, where = CLAIMS[self.kind], f"a guarantee of kind {self.kind!r}"
        for name in sorted(set(names) - {*claim.required, *claim.optional}):
            raise ValueError(f"{where} has no parameter {name!r}")
        for name in sorted(set(claim.required) - set(names)):
            raise ValueError(f"{where} needs the parameter {name!r}")
        claim.check(self)

    def __getitem__(self, name: str) -> float:
        return dict(self.parameters)[name]

    @property
    def claim(self) -> str:
        """The claim itself, in words."""
        return escaped(CLAIMS[self.kind].sentence(self))

    @property
    def loss(self) -> Loss | None:
        """The privacy loss that the guarantee bounds; None where it bounds nothing."""
        loss = CLAIMS[self.kind].loss
        return None if loss is None else loss(self)

    @property
    def formal(self) -> bool:
        """Whether a loss is bounded for every person, whatever the data are."""
        return CLAIMS[self.kind].loss is not None

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
        return (known["y_low"], known["y_high"]) if {"y_low", "y_high"} <= known.keys() else None

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
        group = CLAIMS[self.kind].group
        if group is None:
            raise ValueError(f"a guarantee of kind {self.kind!r} cannot be stated for groups")
        return group(self, integer("k", k, minimum=1))

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

    @property
    def privacy(self) -> Privacy | None:
        """The privacy value behind the claim, for kinds whose release may be kept."""
        rebuild = CLAIMS[self.kind].privacy
        return None if rebuild is None else rebuild(self)

    def __str__(self) -> str:
        lines = [self.claim]
        lines += [f"Released: {escaped(', '.join(self.released))}."] if self.released else []
        if self.assumptions:
            lines.append("This holds provided that:")
            lines += [f"- {escaped(sentence)}" for sentence in self.assumptions]
        lines += [] if self.warning is None else [self.warning]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "kind": self.kind,
            "parameters": dict(self.parameters),
            "adjacency": self.adjacency,
            "assumptions": list(self.assumptions),
            "released": list(self.released),
            "seeded": self.seeded,
            "for_release": self.for_release,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Guarantee:
        """Rebuild what `to_dict` wrote; anything else raises `DocumentError`."""
        fields = Fields(values, "the guarantee")
        kind = fields.text("kind")
        numbers = fields.inner("parameters")
        parameters = tuple((name, numbers.number(name)) for name in numbers.names())
        try:
            guarantee = cls(
                kind=kind,
                parameters=parameters,
                adjacency=fields.text("adjacency"),
                assumptions=tuple(fields.texts("assumptions")),
                released=tuple(fields.texts("released")),
                seeded=fields.flag("seeded"),
            )
        except DocumentError:
            raise
        except ValueError as error:
            raise DocumentError(str(error)) from None
        if fields.flag("for_release") != guarantee.for_release:
            raise DocumentError("for_release is not what follows from the rest of the guarantee")
        fields.end()
        return guarantee
