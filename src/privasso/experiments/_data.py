"""The data sets of an experiment: a law, an index and a seed decide everything in them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from privasso.model import Model, Sample
from privasso.noise import design_from_name
from privasso.scales import Empirical, law_from_name


def stream(seed: int, name: str, index: int) -> np.random.Generator:
    """Return the random numbers of that name: independent of all others and of the grid.

    >>> float(stream(0, "noise", 1).random()) == float(stream(0, "noise", 1).random())
    True
    """
    return np.random.default_rng([seed, zlib.crc32(name.encode()), index])


def model_of(parameters: dict[str, Any]) -> Model:
    """Return the model that the parameters of a unit or an experiment describe."""
    return Model(
        parameters["alpha"],
        parameters["rho"],
        parameters["sigma_xi"],
        law_from_name("law", parameters["law"]),
    )


def model_parameters(experiment: Any, law: str) -> dict[str, Any]:
    """What a unit of the experiment keeps of its model under that law."""
    fields = ("alpha", "rho", "sigma_xi")
    return {"law": law, **{name: getattr(experiment, name) for name in fields}}


@dataclass(frozen=True)
class DataSet:
    """A sample, and standard normal numbers z of which every design makes its noise.

    The same z for all designs and levels: they are compared on common random numbers, and the
    noise at level σ is σ times the noise at level 1.
    """

    model: Model
    sample: Sample
    z: np.ndarray

    @classmethod
    def draw(cls, parameters: dict[str, Any]) -> DataSet:
        """Draw the data set of a unit, from its law, n_features, seed and index."""
        model, n = model_of(parameters), parameters["n_features"]
        seed, index = parameters["seed"], parameters["index"]
        name = f"{parameters['law']} {n}"
        sample = model.sample(n, rng=stream(seed, f"data {name}", index))
        return cls(model, sample, stream(seed, f"noise {name}", index).standard_normal(n))

    def direction(self, design: str) -> np.ndarray:
        """Return the noise of a design at level 1."""
        unit = design_from_name("design", design, 1.0)
        return self.z * np.sqrt(unit.variances(self.sample.v))

    def realised(self) -> Model:
        """Return the model whose law of scales is that of exactly these columns."""
        scales = Empirical(np.sqrt(self.sample.v))
        return Model(self.model.alpha, self.model.rho, self.model.sigma_xi, scales)

    def errors(self, x: np.ndarray) -> np.ndarray:
        """Prediction error E of each column of x on a new record: Σ v_i (x_i − x⁰_i)²/N + σ_ξ²."""
        miss = x - self.sample.x0[:, None]
        return self.sample.v @ miss**2 / self.sample.v.size + self.model.sigma_xi**2
