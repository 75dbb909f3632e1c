"""The base of all experiments: fields, cases, their data sets and noise, and a table of results."""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np
import polars as pl

from privasso import __version__
from privasso._types import Json, Passed
from privasso.model import Model, Sample
from privasso.noise import noise_from_name
from privasso.scales import Empirical, law_from_name
from privasso.solvers import Status, solve

#: What a unit depends on, as JSON values.
Parameters = dict[str, Passed]
#: Lists of equal length, one entry per grid point; a number that does not exist is None.
Result = dict[str, list[Json]]
Row = dict[str, str | int | float | None]

#: The columns that say what a row is about come first, in this order.
_IDENTITY = ("law", "columns", "design", "alpha", "rho", "lam", "sigma", "n_features")
#: Those that every row takes from its case.
_NAMED = ("law", "columns", "design", "lam", "sigma", "n_features")
_ORIGIN = ("samples", "seed", "version")
#: Columns that hold words and whole numbers; all others hold numbers, or null.
_WORDS = {"law", "columns", "design", "version", "status_theory", "status_limit"}
_COUNTS = {"n_features", "quarter", "samples", "seed", "exists", "unbounded", "unsolved"}
_COUNTS |= {f"amp_{end}" for end in ("converged", "unbounded", "flicker", "diverged")}
_COUNTS |= {"converged", "vamp_converged"}


@dataclass(frozen=True)
class Unit:
    """The smallest piece that is computed and stored: one data set. The label is not in the key."""

    kind: str
    parameters: Parameters
    label: str

    @cached_property
    def description(self) -> str:
        """Canonical JSON of the kind, the parameters and the version of the package."""
        content = {"kind": self.kind, "version": __version__, **self.parameters}
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the description, under which the result is stored."""
        return hashlib.sha256(self.description.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """A grid of cases, each computed on `samples` data sets of the model (alpha, rho, sigma_xi).

    A unit of work is one data set of one case. The seed, the law of scales, the number of columns
    and the index of the data set decide its random numbers, so that another grid sees the same
    data.
    """

    kind: ClassVar[str]
    """Name of the computation, part of the key under which results are stored."""
    schema: ClassVar[int] = 1
    """Version of the results; raise it whenever their meaning changes."""
    varied: ClassVar[Mapping[str, str]] = {"laws": "law"}
    """Fields of which each combination of values is a case, and what a value is called there."""

    samples: int = 100
    seed: int = 0
    alpha: float = 0.5
    rho: float = 0.1
    sigma_xi: float = 0.1

    @staticmethod
    @abstractmethod
    def compute(parameters: Parameters) -> Result:
        """Compute one unit from the parameters of its case and the index of its data set."""

    @abstractmethod
    def rows(self, case: Parameters, results: list[Result]) -> Iterator[Row]:
        """Yield the rows that the units of one case give."""

    def cases(self) -> dict[str, Parameters]:
        """All fields but the number of data sets, with one value of each that varies, by a name."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        each = [given.pop(name) for name in self.varied]
        del given["samples"]
        named = {}
        for values in product(*each):
            case: Parameters = {"schema": self.schema, **given}
            for names, value in zip(self.varied.values(), values, strict=True):
                parts = value if isinstance(value, tuple) else (value,)
                case |= zip(names.split(), parts, strict=True)
            words = (f"N = {value}" if isinstance(value, int) else f"{value}" for value in values)
            named[", ".join(words)] = case
        return named

    def units(self) -> list[Unit]:
        """Return one unit per case and data set, case after case."""
        return [
            Unit(self.kind, {**case, "index": k}, f"{name}, data set {k}")
            for name, case in self.cases().items()
            for k in range(self.samples)
        ]

    def table(self, results: list[Result]) -> pl.DataFrame:
        """Return the table, from the results of the units in their order."""
        origin = {"samples": self.samples, "seed": self.seed, "version": __version__}
        rows = []
        for k, case in enumerate(self.cases().values()):
            named = {name: case[name] for name in _NAMED if name in case}
            own = results[k * self.samples : (k + 1) * self.samples]
            rows += [{**named, **origin, **row} for row in self.rows(case, own)]
        return frame(rows)


def at(results: list[Result], k: int = 0) -> Result:
    """What all data sets gave at a grid point."""
    return {name: [result[name][k] for result in results] for name in results[0]}


def known(values: Iterable[float | None]) -> np.ndarray:
    """Return the numbers of a list, without its Nones."""
    return np.array([value for value in values if value is not None], dtype=np.float64)


def or_none(values: np.ndarray, where: np.ndarray) -> list[float | None]:
    """Return numbers as JSON values: None where `where` is false, and for NaN and infinity."""
    return [
        float(value) if there and math.isfinite(value) else None
        for value, there in zip(values, where, strict=True)
    ]


def means(**quantities: Sequence[float | None] | np.ndarray) -> Row:
    """Mean of what is known of each quantity, and ``_se``, its standard error; None for < 2."""
    out: Row = {}
    for name, given in quantities.items():
        values = known(given)
        there = values.size >= 2
        out[name] = float(values.mean()) if there else None
        error = float(values.std(ddof=1) / math.sqrt(values.size)) if there else None
        out[f"{name}_se"] = error
    return out


def frame(rows: list[Row]) -> pl.DataFrame:
    """Return rows as a table, with column types that do not depend on the values."""
    first = [name for name in (*_IDENTITY, *_ORIGIN) if name in rows[0]]
    types = {
        name: pl.String if name in _WORDS else pl.Int64 if name in _COUNTS else pl.Float64
        for name in (*first, *(name for name in rows[0] if name not in first))
    }
    return pl.DataFrame({name: [row[name] for row in rows] for name in types}, schema=types)


def stream(parameters: Parameters, *words: object) -> np.random.Generator:
    """Random numbers that depend on the seed and the index of a unit and on the words alone."""
    name = zlib.crc32(" ".join(map(str, words)).encode())
    return np.random.default_rng([parameters["seed"], name, parameters["index"]])


def model_of(parameters: Parameters) -> Model:
    """Return the model that the parameters of a unit describe."""
    alpha, rho, sigma_xi, law = (parameters[name] for name in ("alpha", "rho", "sigma_xi", "law"))
    return Model(alpha, rho, sigma_xi, law_from_name("law", law))


def neighbours(
    parameters: Parameters, name: str
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Squared scales, a data set (F, y), and it with each of `records` records replaced.

    The new records have the same columns and coefficients: they are rows of a larger sample.
    """
    model, law, n = model_of(parameters), parameters["law"], parameters["n_features"]
    m, records = round(model.alpha * n), parameters["records"]
    larger = replace(model, alpha=(m + records) / n)
    s = larger.sample(n, rng=stream(parameters, name, law, n))
    pairs = [(s.F[:m], s.y[:m])]
    for k in range(records):
        F, y = s.F[:m].copy(), s.y[:m].copy()
        F[k], y[k] = s.F[m + k], s.y[m + k]
        pairs.append((F, y))
    return s.v, pairs


def released(F: np.ndarray, y: np.ndarray, lam: float, eta: np.ndarray) -> np.ndarray | None:
    """The minimiser, or None without one."""
    found = solve(F, y, lam, eta, throw=False)
    return found.x if found.status is Status.CONVERGED else None


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
