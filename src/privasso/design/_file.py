"""A design as a file: versioned JSON, written whole or not at all, and refused when it is off."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from typing import Any

from privasso._documents import finite_number, read_json
from privasso._files import write_whole
from privasso.design._result import OptimalDesign
from privasso.noise import Gram, Isotropic, NoiseDesign, PowerLaw, Tabulated

FORMAT = "privasso-design"
VERSION = 1
#: A design is a few numbers; anything larger is not one.
_MAX_BYTES = 4_000_000
_FIELDS = {"format", "version", "software", "lam", "noise", "predicted", "asked"}
_NOISES = {"Isotropic": Isotropic, "Gram": Gram, "PowerLaw": PowerLaw, "Tabulated": Tabulated}


class DesignFileError(ValueError):
    """A file is not a design that this version can trust."""


@dataclass(frozen=True)
class SavedDesign:
    """What a file of `save_design` holds: λ, the noise with its level, and for information only
    the prediction and the question that it answers.
    """  # noqa: D205

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
    >>> best = pv.optimal_design(pv.Model(), max_onavekl=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_design(best, pathlib.Path(folder) / "design.json")
    ...     saved = load_design(pathlib.Path(folder) / "design.json")
    >>> saved.lam == best.lam, saved.noise == best.noise
    (True, True)
    """
    write_whole(path, json.dumps(to_document(design), indent=2, allow_nan=False) + "\n")


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


def noise_to_dict(noise: NoiseDesign) -> dict[str, Any]:
    """Name and parameters of a design of this package."""
    name = type(noise).__name__
    if isinstance(noise, Tabulated):
        return {"name": name, **noise.to_dict()}
    if _NOISES.get(name) is not type(noise) or not isinstance(noise, PowerLaw):
        raise ValueError(f"a design of type {name} cannot be saved")
    return {"name": name, "sigma": noise.sigma, "gamma": noise.gamma}


def load_design(path: str | os.PathLike[str]) -> SavedDesign:
    """Read a file of `save_design`; raises `DesignFileError` for anything that is not one."""
    return from_document(read_json(path, most_bytes=_MAX_BYTES, error=DesignFileError))


def from_document(document: Any) -> SavedDesign:
    """Check every field and build the design."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DesignFileError(f"the file is not a noise design: format is not {FORMAT!r}")
    version = document.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise DesignFileError(
            f"the design has version {version!r:.40}, and this software reads version {VERSION}"
        )
    if set(document) != _FIELDS:
        wrong = sorted(set(document) ^ _FIELDS)[0]
        raise DesignFileError(f"the design lacks, or has and should not, the field {wrong!r:.60}")
    lam = _number(document["lam"], "lam")
    if lam <= 0.0:
        raise DesignFileError("lam must be positive")
    predicted = document["predicted"]
    if not isinstance(predicted, dict) or len(predicted) > 20:
        raise DesignFileError("predicted must be an object with a few numbers")
    for name in ("software", "asked"):
        if not isinstance(document[name], str):
            raise DesignFileError(f"{name} must be text")
    return SavedDesign(
        lam=lam,
        noise=noise_from_dict(document["noise"]),
        predicted={
            k: None if x is None else _number(x, f"predicted {k:.20}") for k, x in predicted.items()
        },
        asked=document["asked"],
    )


def noise_from_dict(value: Any) -> NoiseDesign:
    """Build the noise design that `noise_to_dict` described."""
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(name, str) or name not in _NOISES:
        raise DesignFileError(f"noise must be an object named one of {', '.join(_NOISES)}")
    rest = {k: x for k, x in value.items() if k != "name"}
    try:
        if name == "Tabulated":
            return Tabulated.from_dict(rest)
        if set(rest) != {"sigma", "gamma"}:
            raise ValueError(f"the noise {name} must have sigma and gamma, and nothing else")
        sigma, gamma = _number(rest["sigma"], "sigma"), _number(rest["gamma"], "gamma")
        noise = PowerLaw(sigma, gamma) if name == "PowerLaw" else _NOISES[name](sigma)
    except ValueError as error:
        raise DesignFileError(str(error)) from None
    if noise.gamma != gamma:
        raise DesignFileError(f"gamma = {gamma:g} contradicts the name {name}")
    return noise


def _number(value: Any, name: str) -> float:
    return finite_number(value, name, error=DesignFileError)
