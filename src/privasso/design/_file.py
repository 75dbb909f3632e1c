"""A design as a file: versioned JSON, written whole or not at all, and refused when it is off."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

from privasso._documents import DocumentError, Fields, json_text, read_json
from privasso._files import write_whole
from privasso.design._result import OptimalDesign
from privasso.noise import NoiseDesign, noise_from_dict, noise_to_dict

FORMAT = "privasso-design"
VERSION = 1
#: A design is a few numbers; anything larger is not one.
_MAX_BYTES = 4_000_000


@dataclass(frozen=True)
class SavedDesign:
    """What a file of `save_design` holds.

    The prediction, and the question that the design answers, are for information only.
    """

    lam: float
    noise: NoiseDesign
    predicted: dict[str, float | None]
    asked: str


def save_design(design: OptimalDesign, path: str | os.PathLike[str]) -> None:
    """Write λ and the noise design to a JSON file.

    Examples
    --------
    >>> import tempfile, pathlib, privasso as pv
    >>> from privasso.design import load_design, save_design
    >>> best = pv.optimal_design(pv.Model(), pv.MaxLeakage(0.5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_design(best, pathlib.Path(folder) / "design.json")
    ...     saved = load_design(pathlib.Path(folder) / "design.json")
    >>> saved.lam == best.lam, saved.noise == best.noise
    (True, True)
    """
    write_whole(path, json_text(to_document(design)))


def to_document(design: OptimalDesign) -> dict[str, Any]:
    """Plain values for JSON; what is not finite is null."""
    from privasso import __version__

    predicted = {
        "E": design.E,
        "rho_hat": design.rho_hat,
        "stability": design.stability,
        "onavekl": design.onavekl(),
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "software": __version__,
        "lam": design.lam,
        "noise": noise_to_dict(design.noise),
        "predicted": {k: x if math.isfinite(x) else None for k, x in predicted.items()},
        "asked": f"{design.constraint.kind} = {design.constraint.target:g} in {design.model!r}",
    }


def load_design(path: str | os.PathLike[str]) -> SavedDesign:
    """Read a file of `save_design`; raises `DocumentError` for anything that is not one.

    Examples
    --------
    >>> load_design(__file__)
    Traceback (most recent call last):
    ...
    privasso._documents.DocumentError: the file is not valid JSON in UTF-8
    """
    return from_document(read_json(path, most_bytes=_MAX_BYTES))


def from_document(document: Any) -> SavedDesign:
    """Check every field and build the design."""
    fields = Fields.of_file(document, "a noise design", FORMAT, VERSION)
    fields.text("software")
    noise = noise_from_dict(fields.take("noise"))
    if not isinstance(noise, NoiseDesign):
        raise DocumentError("the design lacks its noise, or has one that is no function of scale")
    predicted = fields.inner("predicted")
    if len(predicted.names()) > 20:
        raise DocumentError("predicted must be an object with a few numbers")
    saved = SavedDesign(
        lam=fields.number("lam", above=0.0),
        noise=noise,
        predicted={
            name: None if predicted.is_null(name) else predicted.number(name)
            for name in predicted.names()
        },
        asked=fields.text("asked"),
    )
    fields.end()
    return saved
