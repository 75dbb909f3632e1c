"""Version 1 of the release artefact, field by field."""

from __future__ import annotations

from typing import Any

import numpy as np

from privasso import _documents
from privasso.artefact._model import ReleasedModel
from privasso.guarantee import Guarantee

FORMAT = "privasso-release"
VERSION = 1
#: Most columns a model may have; a larger number is a corrupt or hostile file.
MAX_FEATURES = 10_000_000

_FIELDS = {
    "format",
    "version",
    "software",
    "n_features",
    "feature_names",
    "coef",
    "intercept",
    "lam",
    "design",
    "guarantee",
}


class ArtefactError(ValueError):
    """A file is not a release artefact that this version can trust."""


def to_document(model: ReleasedModel) -> dict[str, Any]:
    """Plain values for JSON; only non-zero coefficients are listed."""
    support = np.flatnonzero(model.coef)
    return {
        "format": FORMAT,
        "version": VERSION,
        "software": model.software,
        "n_features": model.n_features,
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "coef": {"index": support.tolist(), "value": model.coef[support].tolist()},
        "intercept": model.intercept,
        "lam": model.lam,
        "design": model.design,
        "guarantee": model.guarantee.to_dict(),
    }


def from_document(document: Any) -> ReleasedModel:
    """Check every field and build the model."""
    if not isinstance(document, dict):
        raise ArtefactError("the file holds no JSON object")
    if document.get("format") != FORMAT:
        raise ArtefactError(f"the file is not a release artefact: format is not {FORMAT!r}")
    version = document.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise ArtefactError(
            f"the artefact has version {version!r:.40}, and this software reads version {VERSION}"
        )
    exact_fields(document, _FIELDS, "the artefact")
    n = whole_number(document["n_features"], "n_features", 1, MAX_FEATURES)
    try:
        guarantee = Guarantee.from_dict(document["guarantee"])
    except ValueError as error:
        raise ArtefactError(str(error)) from None
    return ReleasedModel(
        coef=_coefficients(document["coef"], n),
        intercept=finite_number(document["intercept"], "intercept"),
        lam=positive_number(document["lam"], "lam"),
        guarantee=guarantee,
        design=design_fields(document["design"]),
        feature_names=column_names(document["feature_names"], n),
        software=plain_text(document["software"], "software"),
    )


def _coefficients(value: Any, n: int) -> np.ndarray:
    if not isinstance(value, dict):
        raise ArtefactError("coef must be an object with index and value")
    exact_fields(value, {"index", "value"}, "coef")
    index, values = value["index"], value["value"]
    if not isinstance(index, list) or not isinstance(values, list) or len(index) != len(values):
        raise ArtefactError("coef must have index and value as lists of the same length")
    coef, previous = np.zeros(n), -1
    for i, x in zip(index, values, strict=True):
        at = whole_number(i, "an index of coef", 0, n - 1)
        if at <= previous:
            raise ArtefactError("the indices of coef must increase")
        coef[at], previous = finite_number(x, "a value of coef"), at
    return coef


def design_fields(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ArtefactError("design must be an object")
    exact_fields(value, {"name", "sigma", "gamma"}, "design")
    sigma = finite_number(value["sigma"], "the sigma of design")
    if sigma < 0.0:
        raise ArtefactError("the sigma of design must be zero or positive")
    gamma = value["gamma"]
    return {
        "name": plain_text(value["name"], "the name of design"),
        "sigma": sigma,
        "gamma": None if gamma is None else finite_number(gamma, "the gamma of design"),
    }


def column_names(value: Any, n: int) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != n:
        raise ArtefactError(f"feature_names must be null or a list of {n} names")
    names = tuple(plain_text(name, "a feature name") for name in value)
    if len(set(names)) != n:
        raise ArtefactError("feature_names has a name twice")
    return names


def exact_fields(value: dict[str, Any], fields: set[str], owner: str) -> None:
    for name in sorted(fields - set(value)):
        raise ArtefactError(f"{owner} lacks the field {name!r}")
    for name in sorted(set(value) - fields):
        raise ArtefactError(f"{owner} has an unknown field {name!r:.60}")


def finite_number(value: Any, name: str) -> float:
    return _documents.finite_number(value, name, error=ArtefactError)


def positive_number(value: Any, name: str) -> float:
    number = finite_number(value, name)
    if number <= 0.0:
        raise ArtefactError(f"{name} must be positive")
    return number


def whole_number(value: Any, name: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ArtefactError(f"{name} must be an integer from {low} to {high}")
    return value


def plain_text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ArtefactError(f"{name} must be text")
    return value
