"""Scale laws and noise designs as one word on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privasso.noise import NoiseDesign
    from privasso.scales import ScaleLaw

SCALES_HELP = (
    "Law of the column scales: uniform[:LOW,HIGH], lognormal[:MU,SIGMA], constant[:VALUE], "
    "or a text file with one scale a column."
)
DESIGN_HELP = "Shape of the noise over the columns: isotropic, gram, or power:GAMMA."


def scale_law(text: str) -> ScaleLaw:
    """Return the law that a word such as ``lognormal:0,0.5`` or a file of scales stands for.

    Examples
    --------
    >>> scale_law("uniform"), scale_law("lognormal:0,1")
    (Uniform(low=0.0, high=1.0), LogNormal(mu=0.0, sigma=1.0))
    """
    import numpy as np

    from privasso.scales import Constant, Empirical, LogNormal, Uniform

    name, _, rest = text.partition(":")
    laws = {"uniform": (Uniform, 2), "lognormal": (LogNormal, 2), "constant": (Constant, 1)}
    if name.lower() in laws:
        law, count = laws[name.lower()]
        return law(*_numbers("--scales", text, rest, count)) if rest else law()
    if Path(text).exists():
        try:
            return Empirical(np.loadtxt(text, delimiter=_delimiter(text), ndmin=1).ravel())
        except UnicodeDecodeError:
            raise ValueError(f"{text} is not a text file of scales") from None
    raise ValueError(f"--scales {text!r} is neither a file nor one of uniform, lognormal, constant")


def noise_design(text: str, sigma: float) -> NoiseDesign:
    """Return the design that a word such as ``gram`` or ``power:1.5`` stands for.

    Examples
    --------
    >>> noise_design("power:1.5", sigma=0.1)
    PowerLaw(sigma=0.1, gamma=1.5)
    """
    from privasso.noise import Gram, Isotropic, PowerLaw

    name, _, rest = text.partition(":")
    if name.lower() == "isotropic" and not rest:
        return Isotropic(sigma)
    if name.lower() == "gram" and not rest:
        return Gram(sigma)
    if name.lower() == "power":
        return PowerLaw(sigma, *_numbers("--design", text, rest, 1))
    raise ValueError(f"--design {text!r} is none of isotropic, gram, power:GAMMA")


def _numbers(option: str, text: str, rest: str, count: int) -> list[float]:
    try:
        numbers = [float(part) for part in rest.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != count:
        raise ValueError(
            f"{option} {text!r} needs {count} number{'s' if count > 1 else ''} after the colon"
        )
    return numbers


def _delimiter(path: str) -> str | None:
    with open(path, encoding="utf-8") as file:
        return "," if "," in file.readline() else None
