"""Noise designs by name, and as plain values for JSON."""

from __future__ import annotations

import numpy as np

from privasso._documents import DocumentError, Fields
from privasso._text import word_and_numbers
from privasso.noise._covariance import Covariance, Diagonal
from privasso.noise._designs import (
    MAX_NODES,
    Gram,
    Isotropic,
    NoiseDesign,
    PowerLaw,
    Shaped,
    Tabulated,
)
from privasso.noise._factored import Factored, MatrixPower

#: Words of designs, and how many numbers follow each.
_WORDS = {"isotropic": 0, "gram": 0, "power": 1}
_POWERS: dict[str, type[Isotropic] | type[Gram]] = {"Isotropic": Isotropic, "Gram": Gram}
_NAMED = ("Isotropic", "Gram", "PowerLaw", "Shaped", "Tabulated")


def noise_to_dict(noise: NoiseDesign | Shaped | None) -> dict[str, object] | None:
    """Name and parameters of a design of this package; None for a design from elsewhere."""
    name = type(noise).__name__
    if type(noise) is Shaped:
        return {"name": name, "sigma": noise.sigma, "shrink": noise.shrink}
    if type(noise) is Tabulated:
        nodes = {"log_v": list(noise.log_v), "log_profile_at": list(noise.log_profile_at)}
        return {"name": name, "sigma": noise.sigma, **nodes}
    if type(noise) in (Isotropic, Gram, PowerLaw) and isinstance(noise, PowerLaw):
        return {"name": name, "sigma": noise.sigma, "gamma": noise.gamma}
    return None


def noise_from_dict(value: object) -> NoiseDesign | Shaped | None:
    """Build the design that `noise_to_dict` described; anything else raises `DocumentError`."""
    if value is None:
        return None
    fields = Fields(value, "noise")
    name = fields.take("name")
    if name not in _NAMED:
        raise DocumentError(f"noise must be an object named one of {', '.join(_NAMED)}")
    sigma = fields.number("sigma", least=0.0)
    try:
        if name == "Tabulated":
            nodes = fields.numbers("log_v", most=MAX_NODES)
            values = fields.numbers("log_profile_at", nodes.size)
            fields.end()
            return Tabulated(sigma, tuple(nodes), tuple(values))
        if name == "Shaped":
            shrink = fields.number("shrink")
            fields.end()
            return Shaped(sigma, shrink)
        gamma = fields.number("gamma")
        fields.end()
        noise = PowerLaw(sigma, gamma) if name == "PowerLaw" else _POWERS[name](sigma)
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(str(error)) from None
    if noise.gamma != gamma:
        raise DocumentError(f"gamma = {gamma:g} contradicts the name {name}")
    return noise


def covariance_to_dict(covariance: Covariance) -> dict[str, object]:
    """Form and numbers of a covariance."""
    if isinstance(covariance, Diagonal):
        return {"form": "diagonal", "variances": covariance.diagonal.tolist()}
    if isinstance(covariance, Factored):
        root = covariance.root.ravel().tolist()
        return {"form": "factored", "rank": covariance.rank, "root": root}
    raise ValueError(f"a covariance of type {type(covariance).__name__} cannot be saved")


def covariance_from_dict(value: object, size: int) -> Covariance:
    """Build the covariance over `size` columns that `covariance_to_dict` described."""
    fields = Fields(value, "covariance")
    form = fields.text("form")
    if form == "diagonal":
        variances = fields.numbers("variances", size, least=0.0)
        fields.end()
        return Diagonal(variances)
    if form != "factored":
        raise DocumentError("the form of covariance must be diagonal or factored")
    rank = fields.whole("rank", 1, size)
    root = fields.numbers("root", size * rank)
    fields.end()
    try:
        return Factored(np.reshape(root, (size, rank)))
    except ValueError as error:
        raise DocumentError(str(error)) from None


def noise_from_name(name: str, text: str, sigma: float) -> NoiseDesign:
    """Return the design that a word such as ``gram`` or ``power:1.5`` stands for.

    `name`: name of the argument; every error message starts with it. `text`: isotropic, gram or
    power:GAMMA.
    """
    word, gamma = word_and_numbers(name, text, _WORDS)
    return PowerLaw(sigma, *gamma) if gamma else _POWERS[word.capitalize()](sigma)


def column_noise_from_name(name: str, text: str, sigma: float) -> NoiseDesign | MatrixPower:
    """As `noise_from_name`, or ``matrix:GAMMA`` for a power of the covariance of the columns."""
    word, gamma = word_and_numbers(name, text, _WORDS | {"matrix": 1})
    return MatrixPower(sigma, *gamma) if word == "matrix" else noise_from_name(name, text, sigma)
