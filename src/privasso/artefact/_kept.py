"""A release kept as a file, from which models at any λ follow without the labels."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privasso.artefact._file import json_text, read_document
from privasso.artefact._schema import (
    MAX_FEATURES,
    ArtefactError,
    column_names,
    design_fields,
    exact_fields,
    finite_number,
    plain_text,
    positive_number,
    whole_number,
)
from privasso.guarantee import Guarantee
from privasso.mechanism import Release

FORMAT = "privasso-kept-release"
VERSION = 1
#: Most rows a release may speak of.
_MAX_ROWS = 10**12

_FIELDS = {
    "format",
    "version",
    "software",
    "target",
    "n_rows",
    "feature_names",
    "column_squares",
    "b",
    "sigma",
    "centre",
    "label_sum",
    "sigma_sum",
    "mu",
    "design",
    "guarantee",
}


@dataclass(frozen=True, eq=False)
class KeptRelease:
    """What left the mechanism under label differential privacy, with all it takes to go on.

    It holds neither labels nor noise. With the public covariates it gives the coefficients at
    any λ, which the guarantee covers already.

    Attributes
    ----------
    release : Release
        b, the noisy label sum, and the levels of the noise.
    column_squares : ndarray of shape (N,)
        Squared norms of the (centred) columns, by which the covariates are recognised.
    guarantee : Guarantee
        Of kind ``"label-dp"``.
    design : dict
        Noise design, as in `ReleasedModel`.
    feature_names : tuple of str
        Columns, in the order of b.
    target : str
        Name of the column of labels.
    software : str
        Version of privasso that wrote it.
    """

    release: Release
    column_squares: np.ndarray = field(repr=False)
    guarantee: Guarantee = field(repr=False)
    design: dict[str, Any]
    feature_names: tuple[str, ...] = field(repr=False)
    target: str
    software: str

    @property
    def width(self) -> float:
        """Distance between the bounds of the labels."""
        return self.guarantee["y_high"] - self.guarantee["y_low"]


def kept_text(kept: KeptRelease) -> str:
    """Return the text of the file, checked by the rules of `load_kept`."""
    release = kept.release
    document = {
        "format": FORMAT,
        "version": VERSION,
        "software": kept.software,
        "target": kept.target,
        "n_rows": release.n_rows,
        "feature_names": list(kept.feature_names),
        "column_squares": kept.column_squares.tolist(),
        "b": release.b.tolist(),
        "sigma": release.sigma.tolist(),
        "centre": release.centre,
        "label_sum": release.label_sum,
        "sigma_sum": release.sigma_sum,
        "mu": release.mu,
        "design": kept.design,
        "guarantee": kept.guarantee.to_dict(),
    }
    _from_document(document)
    return json_text(document)


def load_kept(path: str | os.PathLike[str]) -> KeptRelease:
    """Read a kept release; a file that is not exactly one raises `ArtefactError`."""
    return _from_document(read_document(path))


def _from_document(document: Any) -> KeptRelease:
    if not isinstance(document, dict):
        raise ArtefactError("the file holds no JSON object")
    if document.get("format") != FORMAT:
        raise ArtefactError(f"the file is not a kept release: format is not {FORMAT!r}")
    version = document.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise ArtefactError(
            f"the release has version {version!r:.40}, and this software reads version {VERSION}"
        )
    exact_fields(document, _FIELDS, "the release")
    names = document["feature_names"]
    if not isinstance(names, list) or not 0 < len(names) <= MAX_FEATURES:
        raise ArtefactError("feature_names must be a list of names")
    checked = column_names(names, len(names))
    assert checked is not None
    try:
        guarantee = Guarantee.from_dict(document["guarantee"])
    except ValueError as error:
        raise ArtefactError(str(error)) from None
    if guarantee.kind != "label-dp":
        raise ArtefactError("only a release under label differential privacy may be kept")
    return KeptRelease(
        release=_release(document, len(names)),
        column_squares=_vector(document["column_squares"], "column_squares", len(names)),
        guarantee=guarantee,
        design=design_fields(document["design"]),
        feature_names=checked,
        target=plain_text(document["target"], "target"),
        software=plain_text(document["software"], "software"),
    )


def _release(document: dict[str, Any], n: int) -> Release:
    with_sum = document["label_sum"] is not None
    if with_sum != (document["sigma_sum"] is not None):
        raise ArtefactError("label_sum and sigma_sum go together: both numbers or both null")
    return Release(
        b=_vector(document["b"], "b", n, negative=True),
        sigma=_vector(document["sigma"], "sigma", n),
        n_rows=whole_number(document["n_rows"], "n_rows", 1, _MAX_ROWS),
        centre=finite_number(document["centre"], "centre"),
        label_sum=finite_number(document["label_sum"], "label_sum") if with_sum else None,
        sigma_sum=positive_number(document["sigma_sum"], "sigma_sum") if with_sum else None,
        mu=positive_number(document["mu"], "mu"),
    )


def _vector(value: Any, name: str, n: int, *, negative: bool = False) -> np.ndarray:
    if not isinstance(value, list) or len(value) != n:
        raise ArtefactError(f"{name} must be a list of {n} numbers")
    vector = np.array([finite_number(x, f"an entry of {name}") for x in value])
    if not negative and np.min(vector) < 0.0:
        raise ArtefactError(f"the entries of {name} must be zero or positive")
    return vector
