"""The noise of a perturbed objective: drawn on a grid before the solve, and added to the minimiser.

The mechanism that the accounting is about returns the exact minimiser x̂ of a perturbed objective,
with real numbers. A computer has neither. Everything that differs is closed by a bound on the
distance between the computed and the exact minimiser. The solver proves one; to it are added what
the rounding of η and of x to a grid can do. Then Gaussian noise of a size well above that distance
is added to x, in integers. What is published then differs from the exact mechanism followed by the
same noise by a shift of a tiny part of a deviation, which costs a tiny part of ε; see
`InexactLoss`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privasso.accounting import check_coverable, least_delta
from privasso.problem import Loss
from privasso.queries._query import EMPTIED, Neighbours
from privasso.queries._rounded_gaussian import BitSource, rounded_gaussian

#: Coefficients within so many deviations of the output noise of zero are set to zero.
THRESHOLD = 5.0
#: η is drawn on a grid of 2^−52 of its deviation, or of 2^−116 where that is too coarse.
ETA_BITS, _FINE_BITS = 52, 116
#: x is rounded to a grid of about 2^−40 of the deviation of the output noise, or to a finer one
#: where that is too coarse.
GRID_BITS = 40
#: The distance at which a solver stops, relative to what the output noise covers.
ENOUGH = 0.25
#: Guards products of a few numbers against their own rounding.
SLACK = 1.0 + 1e-12
UNIT = 2.0**-53


UNCERTIFIED = (
    "the minimiser could not be certified to the accuracy that the guarantee needs, so nothing was "
    "published; this is a fault of privasso, so please report the settings of the fit"
)


class UncertifiedError(RuntimeError):
    """The minimiser was not certified closely enough, which no data should do; nothing came out."""


#: Part of ε that is kept for the distance between the computed and the exact mechanism.
EPSILON_SHARE = 1e-4
#: With a smaller ε the noise is so large that its size in integers is beyond what can be drawn.
_LEAST_EPSILON = 1e-9


def check_budget(epsilon: float, delta: float) -> None:
    """Refuse a budget that no computed minimiser can keep, see `check_coverable`."""
    if epsilon < _LEAST_EPSILON:
        raise ValueError(
            f"epsilon must be at least {_LEAST_EPSILON:g}, not {epsilon!r}: with less the noise is "
            "larger than any result"
        )
    check_coverable(epsilon, delta, EPSILON_SHARE * min(epsilon, 1.0))


def coverable(epsilon: float, delta: float) -> bool:
    """Whether a computed minimiser can keep a budget."""
    least = least_delta(epsilon, EPSILON_SHARE * min(epsilon, 1.0))
    return epsilon >= _LEAST_EPSILON and delta >= least


@dataclass(frozen=True)
class ObjectiveNoise:
    """Noise, ridge and accounting numbers of one perturbed fit; all of them are public.

    Attributes
    ----------
    loss : Loss
        ℓ, with its κ.
    radius : float
        R: no row, times its weight, is longer.
    ridge : float
        Λ = R²/t, or RK/(4t) with the logistic loss.
    sigma : float
        Deviation of η, so that c = Δψ·R/σ, where Δψ is what a label that is replaced changes in a
        slope of ℓ, or else the largest slope.
    c, t : float
        As in `objective_delta`.
    sigma_out : float
        Deviation of the noise that is added to the coefficients.
    shift : float
        Bound on the distance ‖x − x̂‖ between computed and exact minimiser, in units of sigma_out.
    mu : float
        Sensitivity of all Gaussian releases of the same data that the budget covers too.
    neighbours : Neighbours
        How data sets differ that must be hard to tell apart.
    """

    loss: Loss
    radius: float
    ridge: float
    sigma: float
    c: float
    t: float
    sigma_out: float
    shift: float
    mu: float = 0.0
    neighbours: Neighbours = EMPTIED

    @property
    def kappa(self) -> float:
        """κ of the loss."""
        return self.loss.kappa


@dataclass(frozen=True, eq=False)
class Eta:
    """A draw of η, and how far its rounding moves the minimiser.

    Attributes
    ----------
    noise : ObjectiveNoise
    z : list of int
        η/σ in multiples of 2^−bits.
    bits : int
    """

    noise: ObjectiveNoise
    z: list[int]
    bits: int

    @property
    def normal(self) -> np.ndarray:
        """η/σ in double precision."""
        return np.array([math.ldexp(float(k), -self.bits) for k in self.z])

    @property
    def values(self) -> np.ndarray:
        """η in double precision."""
        return self.noise.sigma * self.normal

    @property
    def exact(self) -> list[Fraction]:
        """η as it was drawn."""
        return [Fraction(self.noise.sigma) * Fraction(k, 1 << self.bits) for k in self.z]

    @property
    def rounded(self) -> float:
        """How far `values` move the minimiser away from that of a normal number.

        They are half a step of the grid away from one, and rounded twice. An error e of the linear
        term moves the minimiser by ‖e‖/Λ at most, because the objective is Λ-strongly convex.
        """
        off = 2.0**-ETA_BITS + 4.0 * UNIT * np.abs(self.normal)
        return self.noise.sigma * float(np.linalg.norm(off)) / self.noise.ridge

    @property
    def step(self) -> float:
        """The same for `exact`, which is not rounded."""
        half = math.ldexp(1.0, -self.bits - 1) * SLACK
        return self.noise.sigma * half * math.sqrt(len(self.z)) / self.noise.ridge


def drawn_eta(noise: ObjectiveNoise, n: int, bits: BitSource) -> Eta:
    """Draw η; public numbers say on which grid."""
    return drawn_etas(noise, n, 1, bits)[0]


def drawn_etas(noise: ObjectiveNoise, n: int, count: int, bits: BitSource) -> list[Eta]:
    """Draw η several times."""
    step = math.ldexp(4.0, -ETA_BITS) * math.sqrt(n) * noise.sigma / noise.ridge
    grid = ETA_BITS
    if step <= 0.25 * noise.shift * noise.sigma_out:
        drawn = rounded_gaussian(2.0**ETA_BITS, n * count, bits)
    else:
        drawn, grid = rounded_gaussian(2.0**ETA_BITS, n * count, bits, finer=True), _FINE_BITS
    return [Eta(noise, one, grid) for one in drawn.reshape(count, n).tolist()]


def output_exponent(noise: ObjectiveNoise, n: int) -> int:
    """The e of the grid 2ᵉ to which n coefficients are rounded before noise is added."""
    fine = math.ceil(math.log2(4.0 * math.sqrt(n) / noise.shift))
    return math.floor(math.log2(noise.sigma_out)) - max(GRID_BITS, fine)


def covers(noise: ObjectiveNoise, off: float, n: int) -> bool:
    """Whether the output noise covers n coefficients on their grid, before it within `off` of x̂."""
    step = 0.5 * math.ldexp(1.0, output_exponent(noise, n)) * math.sqrt(n)
    return (off + step) * SLACK <= noise.shift * noise.sigma_out


def noisy_output(
    noise: ObjectiveNoise, whole: list[int], off: float, bits: BitSource
) -> np.ndarray:
    """Add the output noise to x, given in steps of its grid, before it certainly within `off`."""
    return noisy_outputs(noise, [whole], off, bits)[0]


def noisy_outputs(
    noise: ObjectiveNoise, wholes: list[list[int]], off: float, bits: BitSource
) -> np.ndarray:
    """The same for several x, each of which is certainly within `off`."""
    shape = len(wholes), len(wholes[0])
    exponent = output_exponent(noise, shape[1])
    if not covers(noise, off, shape[1]):
        raise UncertifiedError(UNCERTIFIED)
    steps = rounded_gaussian(math.ldexp(noise.sigma_out, -exponent), shape[0] * shape[1], bits)
    values = (k for whole in wholes for k in whole)
    found = [
        math.ldexp(float(k + step), exponent)
        for k, step in zip(values, steps.tolist(), strict=True)
    ]
    return np.array(found).reshape(shape)


def without_small(
    x: np.ndarray, deviation: float | np.ndarray, penalty_weights: np.ndarray
) -> np.ndarray:
    """Zero where a coefficient with a penalty is within `THRESHOLD` deviations of zero."""
    small = (np.abs(x) <= THRESHOLD * deviation) & (penalty_weights > 0.0)
    return np.where(small, 0.0, x)
