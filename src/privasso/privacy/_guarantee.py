"""What may be claimed about a release and under which assumptions, as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privasso._documents import DocumentError, Fields
from privasso._validation import real_float

if TYPE_CHECKING:
    from privasso.privacy._kind import Privacy

NOT_FOR_RELEASE = (
    "NOT FOR RELEASE: the noise came from a fixed random state, and anyone who knows the state "
    "can remove it. Fit again without a seed before publishing."
)


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
    """

    kind: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    sentence: Callable[[Guarantee], str]
    check: Callable[[Guarantee], None] = lambda guarantee: None
    privacy: Callable[[Guarantee], Privacy] | None = None


#: The kinds that exist; each file of a kind adds its own.
CLAIMS: dict[str, Claim] = {}


def register(claim: Claim) -> Claim:
    """Add a kind of guarantee."""
    CLAIMS[claim.kind] = claim
    return claim


@dataclass(frozen=True)
class Guarantee:
    """What is claimed about a release, under which assumptions, about which objects.

    ``str`` gives plain sentences. Only formal kinds carry an ε.

    Attributes
    ----------
    kind : str
        ``"label-dp"``, ``"average-case"`` or ``"none"``.
    parameters : tuple of (str, float)
        The numbers of the statement, sorted by name; ``guarantee["delta"]`` looks one up.
    adjacency : str
        Which data sets count as neighbours; empty where nothing is claimed.
    assumptions : tuple of str
        Sentences without which the statement is false.
    released : tuple of str
        What the statement covers.
    for_release : bool
        False when the noise came from a fixed random state.

    Examples
    --------
    >>> from privasso import Guarantee
    >>> nothing = Guarantee("none", (), "", (), ("coefficients",), for_release=True)
    >>> print(nothing)
    No privacy: the model was fitted without noise.
    Released: coefficients.
    >>> Guarantee.from_dict(nothing.to_dict()) == nothing
    True
    """

    kind: str
    parameters: tuple[tuple[str, float], ...]
    adjacency: str
    assumptions: tuple[str, ...]
    released: tuple[str, ...]
    for_release: bool

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
        return CLAIMS[self.kind].sentence(self)

    @property
    def warning(self) -> str | None:
        """Why the release must not be published, or None."""
        return None if self.for_release else NOT_FOR_RELEASE

    @property
    def privacy(self) -> Privacy | None:
        """The privacy value behind the claim, for kinds whose release may be kept."""
        rebuild = CLAIMS[self.kind].privacy
        return None if rebuild is None else rebuild(self)

    def __str__(self) -> str:
        lines = [self.claim]
        lines += [f"Released: {', '.join(self.released)}."] if self.released else []
        if self.assumptions:
            lines.append("This holds provided that:")
            lines += [f"- {sentence}" for sentence in self.assumptions]
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
                for_release=fields.flag("for_release"),
            )
        except DocumentError:
            raise
        except ValueError as error:
            raise DocumentError(str(error)) from None
        fields.end()
        return guarantee
