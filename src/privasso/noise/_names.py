"""Noise designs by name."""

from __future__ import annotations

from privasso.noise._design import NoiseDesign
from privasso.noise._matrix_power import MatrixPower
from privasso.noise._power import Gram, Isotropic, PowerLaw


def noise_from_name(name: str, text: str, sigma: float) -> NoiseDesign:
    """Return the design that a word such as ``gram`` or ``power:1.5`` stands for.

    `name`: name of the argument; every error message starts with it. `text`: isotropic, gram or
    power:GAMMA.
    """
    word, _, rest = text.partition(":")
    if word.lower() == "isotropic" and not rest:
        return Isotropic(sigma)
    if word.lower() == "gram" and not rest:
        return Gram(sigma)
    if word.lower() != "power":
        raise ValueError(f"{name} {text!r} is none of isotropic, gram, power:GAMMA")
    try:
        gamma = float(rest)
    except ValueError:
        raise ValueError(
            f"{name} {text!r} needs 1 number after the colon, e.g. power:0.5"
        ) from None
    return PowerLaw(sigma, gamma)


def column_noise_from_name(name: str, text: str, sigma: float) -> NoiseDesign | MatrixPower:
    """As `noise_from_name`, or ``matrix:GAMMA`` for a power of the covariance of the columns."""
    word, _, rest = text.partition(":")
    if word.lower() != "matrix":
        return noise_from_name(name, text, sigma)
    try:
        gamma = float(rest)
    except ValueError:
        raise ValueError(f"{name} {text!r} needs a number after the colon, e.g. matrix:1") from None
    return MatrixPower(sigma, gamma)
