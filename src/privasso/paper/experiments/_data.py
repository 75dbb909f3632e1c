"""The data sets of the experiments, and the random numbers that they are made of."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import numpy as np

from privasso.model import Model, Sample
from privasso.noise import noise_from_name
from privasso.paper.experiments._experiment import Parameters
from privasso.scales import Empirical, law_from_name


def stream(parameters: Parameters, *words: object) -> np.random.Generator:
    """Random numbers that depend on the seed and the index of a unit and on the words alone."""
    name = zlib.crc32(" ".join(map(str, words)).encode())
    return np.random.default_rng([parameters["seed"], name, parameters["index"]])


def model_of(parameters: Parameters) -> Model:
    """Return the model that the parameters of a unit describe."""
    alpha, rho, sigma_xi, law = (parameters[name] for name in ("alpha", "rho", "sigma_xi", "law"))
    return Model(alpha, rho, sigma_xi, law_from_name("law", law))


@dataclass(frozen=True)
class DataSet:
    """A sample, and the standard normal numbers z from which the noise of every design is made.

    All designs and levels use the same z. They are thus compared on common random numbers, and the
    noise at level σ is σ times the noise at level 1.
    """

    model: Model
    sample: Sample
    z: np.ndarray

    @classmethod
    def draw(cls, parameters: Parameters) -> DataSet:
        """Draw the data set of a unit, from its law, n_features, seed and index."""
        model, law, n = model_of(parameters), parameters["law"], parameters["n_features"]
        sample = model.sample(n, rng=stream(parameters, "data", law, n))
        return cls(model, sample, stream(parameters, "noise", law, n).standard_normal(n))

    def direction(self, design: str) -> np.ndarray:
        """Return the noise of a design at level 1."""
        noise = noise_from_name("design", design, 1.0)
        return self.z * np.sqrt(noise.variances(self.sample.v))

    def realised(self) -> Model:
        """Return the model whose scales are those of the columns of this data set."""
        return replace(self.model, scales=Empirical(np.sqrt(self.sample.v)))

    def errors(self, x: np.ndarray) -> np.ndarray:
        """Prediction error E of each column of x on a new record: Σ v_i (x_i − x⁰_i)²/N + σ_ξ²."""
        miss = x - self.sample.x0[:, None]
        return self.sample.v @ miss**2 / self.sample.v.size + self.model.sigma_xi**2
