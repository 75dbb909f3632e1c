"""A privacy statement with its assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from privasso._validation import real_float

KINDS = ("label-dp", "average-case", "none")
_LABEL_DP = ("delta", "epsilon", "y_high", "y_low")
_AVERAGE = ("onavekl_joint", "onavekl_paper", "sigma")


@dataclass(frozen=True)
class Guarantee:
    """What is claimed about a release, under which assumptions, about which objects.

    ``str`` gives plain sentences. The only kind that carries an ε is ``"label-dp"``.

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
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {self.kind!r}")
        pairs = tuple(sorted((str(k), real_float(f"parameter {k}", x)) for k, x in self.parameters))
        object.__setattr__(self, "parameters", pairs)
        names = tuple(name for name, _ in pairs)
        if len(set(names)) != len(names):
            raise ValueError("parameters has a name twice")
        if self.kind == "label-dp":
            self._check_label_dp(names)
        allowed = {"label-dp": _LABEL_DP, "average-case": _AVERAGE, "none": ()}[self.kind]
        extra = sorted(set(names) - set(allowed))
        if extra:
            raise ValueError(f"a guarantee of kind {self.kind!r} has no parameter {extra[0]!r}")
        if self.kind == "average-case" and "sigma" not in names:
            raise ValueError("a guarantee of kind 'average-case' needs the parameter 'sigma'")

    def _check_label_dp(self, names: tuple[str, ...]) -> None:
        missing = sorted(set(_LABEL_DP) - set(names))
        if missing:
            raise ValueError(f"a guarantee of kind 'label-dp' needs the parameter {missing[0]!r}")
        if self["epsilon"] <= 0.0 or not 0.0 < self["delta"] < 1.0:
            raise ValueError("a label-dp guarantee needs epsilon > 0 and 0 < delta < 1")
        if not self["y_low"] < self["y_high"]:
            raise ValueError("a label-dp guarantee needs y_low < y_high")

    def __getitem__(self, name: str) -> float:
        return dict(self.parameters)[name]

    def __str__(self) -> str:
        lines = [self._claim()]
        lines += [f"Released: {', '.join(self.released)}."] if self.released else []
        if self.assumptions:
            lines.append("This holds provided that:")
            lines += [f"- {sentence}" for sentence in self.assumptions]
        if not self.for_release:
            lines.append(
                "NOT FOR RELEASE: the noise came from a fixed random state, so whoever knows the "
                "state can remove it. Fit again with random_state=None."
            )
        return "\n".join(lines)

    def _claim(self) -> str:
        if self.kind == "label-dp":
            return (
                f"Label differential privacy with ε = {self['epsilon']:g} and "
                f"δ = {self['delta']:g}: for any two label vectors that differ in "
                f"{self.adjacency}, every outcome that has probability p under one has at least "
                f"(p − δ)·e^(−ε) under the other. Labels are clipped to "
                f"[{self['y_low']:g}, {self['y_high']:g}]. The covariates are not protected."
            )
        if self.kind == "none":
            return "No privacy: the model was fitted without noise."
        text = (
            "Average-case privacy only: the objective was perturbed by noise of root mean "
            f"variance {self['sigma']:g}. This bounds nothing for any one person and is no "
            "differential privacy."
        )
        parameters = dict(self.parameters)
        if "onavekl_joint" in parameters:
            text += (
                " Under the given model and for many columns, replacing one record changes the "
                "law of the released coefficients by an on-average KL divergence of "
                f"{parameters['onavekl_joint']:.4g}"
            )
            if "onavekl_paper" in parameters:
                text += f" (component-wise: {parameters['onavekl_paper']:.4g})"
            text += "."
        return text

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
        """Rebuild what `to_dict` wrote; refuses missing and unknown fields and wrong types."""
        if not isinstance(values, Mapping):
            raise ValueError("the guarantee must be an object with named fields")
        names = {f.name for f in fields(cls)}
        for name in sorted(names - set(values)):
            raise ValueError(f"the guarantee lacks the field {name!r}")
        for name in sorted(set(values) - names):
            raise ValueError(f"the guarantee has an unknown field {name!r}")
        for name in ("kind", "adjacency"):
            if not isinstance(values[name], str):
                raise ValueError(f"the guarantee's {name} must be text")
        for name in ("assumptions", "released"):
            entries = values[name]
            if not isinstance(entries, list) or not all(isinstance(t, str) for t in entries):
                raise ValueError(f"the guarantee's {name} must be a list of sentences")
        if not isinstance(values["parameters"], Mapping):
            raise ValueError("the guarantee's parameters must be an object with named numbers")
        if not isinstance(values["for_release"], bool):
            raise ValueError("the guarantee's for_release must be true or false")
        return cls(
            kind=values["kind"],
            parameters=tuple(values["parameters"].items()),
            adjacency=values["adjacency"],
            assumptions=tuple(values["assumptions"]),
            released=tuple(values["released"]),
            for_release=values["for_release"],
        )
