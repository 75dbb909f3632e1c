"""The result of a search, with common designs for comparison, and as a file."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

from privasso._documents import DocumentError, Fields, json_text, read_json
from privasso._files import write_whole
from privasso.design._program import LEAKAGE
from privasso.model import Model
from privasso.noise import MatrixPower, NoiseDesign, PowerLaw, noise_from_dict, noise_to_dict
from privasso.theory import FixedPoint

if TYPE_CHECKING:
    from privasso.design._limits import Limit


#: A design whose error is at least this fraction of the error without coefficients is useless.
NEARLY_NULL = 0.95


class InfeasibleError(ValueError):
    """No design meets the target; the message names the nearest that can be met.

    Examples
    --------
    >>> import privasso as pv
    >>> try:
    ...     pv.optimal_design(pv.Model(), pv.MaxError(1e-4))  # the label noise alone has 1e-2
    ... except pv.InfeasibleError:
    ...     print("no design has such a small error")
    no design has such a small error
    """


@dataclass(frozen=True, eq=False)
class Design:
    """Settings with what state evolution predicts for them."""

    point: FixedPoint

    @property
    def model(self) -> Model:
        """The model of `point`."""
        return self.point.model

    @property
    def lam(self) -> float:
        """Regularisation λ."""
        return self.point.lam

    @property
    def E(self) -> float:
        """Predicted error on a new record, label noise included."""
        return self.point.E

    @property
    def rho_hat(self) -> float:
        """Predicted fraction of nonzero coefficients."""
        return self.point.rho_hat

    @property
    def null_error(self) -> float:
        """Error ρE[v] + σ_ξ² of releasing nothing."""
        return _signal(self.model) + self.model.sigma_xi**2

    @property
    def nearly_null(self) -> bool:
        """Whether releasing nothing would be about as accurate."""
        return NEARLY_NULL * self.null_error <= self.E


def _signal(model: Model) -> float:
    return model.rho * model.scales.moment(1.0)


@dataclass(frozen=True, eq=False)
class OptimalDesign(Design):
    """A noise design with its λ, and what state evolution predicts for it.

    Made by `optimal_design`.

    Attributes
    ----------
    lam : float
        Regularisation λ.
    noise : NoiseDesign
        The noise with its level, for any function that takes a noise design.
    point : FixedPoint
        The prediction.
    constraint : MaxLeakage, MaxAdvantage, MaxError or a limit for labels
        What was asked for. Its `kind` is "max_onavekl", "max_advantage", "max_error" or
        "label_dp", its `target` κ, a, e, or the largest sensitivity μ(ε, δ).
    multiplier : float
        Price of the constraint, the derivative of the optimal value in the target: dE/dκ for
        ``max_onavekl``, dE/da for ``max_advantage``, dOnAveKL/dE for ``max_error``, dE/dε at the
        same δ for ``label_dp``. Zero where the constraint is slack.
    null_error : float
        Error ρE[v] + σ_ξ² of releasing nothing.
    n_features : int or None
        As in `optimal_design`.

    Examples
    --------
    >>> import privasso as pv
    >>> best = pv.optimal_design(pv.Model(alpha=2.0), pv.MaxLeakage(1.0))
    >>> best.noise.gamma > 0.0, best.E < best.null_error
    (True, True)
    >>> round(best.onavekl(), 3)  # the constraint is met
    1.0
    """

    constraint: Limit
    multiplier: float
    n_features: int | None
    _again: Callable[[float], OptimalDesign] = field(repr=False)
    """Answers the same request with a power law of given exponent."""

    @property
    def noise(self) -> NoiseDesign:
        """The noise, with its level."""
        return cast(NoiseDesign, self.point.noise)

    @property
    def stability(self) -> float:
        """ρ̂/α."""
        return self.point.stability

    def onavekl(self, kind: str = "joint") -> float:
        """Predicted on-average KL divergence, not an ε; see `FixedPoint.onavekl` for the kinds."""
        return self.point.onavekl(kind)

    @property
    def gamma(self) -> float:
        """The exponent of v."""
        return cast(PowerLaw, self.noise).gamma

    @cached_property
    def comparison(self) -> dict[str, TunedDesign]:
        """Isotropic, γ = 1 and Gram under the same constraint, each with its own best λ and σ.

        Examples
        --------
        >>> import privasso as pv
        >>> model = pv.Model(scales=pv.LogNormal(0.0, 0.5))
        >>> best = pv.optimal_design(model, pv.MaxLeakage(2.0))
        >>> {name: round(other.ratio, 3) for name, other in best.comparison.items()}
        {'isotropic': 1.107, 'gamma=1': 1.0, 'gram': 1.122}
        """
        shapes = {"isotropic": 0.0, "gamma=1": 1.0, "gram": 2.0}
        return {name: self._compared(gamma) for name, gamma in shapes.items()}

    def _compared(self, gamma: float) -> TunedDesign:
        try:
            other = self._again(gamma)
        except InfeasibleError:
            return TunedDesign(None, math.inf)
        if self.constraint.objective == LEAKAGE:
            its, own = other.onavekl(), self.onavekl()
        else:
            its, own = other.E, self.E
        return TunedDesign(other, its / own if own > 0.0 else math.nan)


@dataclass(frozen=True, eq=False)
class TunedDesign:
    """A design of fixed shape with λ and σ chosen as well as possible for the same target.

    `best`: the design; None where the shape cannot meet the target. `ratio`: what is minimised (E,
    or OnAveKL under a limit on E) divided by the same of the optimal design; inf where the shape
    cannot meet the target.
    """

    best: OptimalDesign | None
    ratio: float

    @property
    def E(self) -> float:
        """Predicted error on a new record; inf where the target cannot be met."""
        return math.inf if self.best is None else self.best.E

    @property
    def lam(self) -> float:
        """Regularisation λ; NaN where the target cannot be met."""
        return math.nan if self.best is None else self.best.lam

    @property
    def sigma(self) -> float:
        """Level of the noise; NaN where the target cannot be met."""
        return math.nan if self.best is None else self.best.noise.sigma

    def onavekl(self, kind: str = "joint") -> float:
        """Predicted on-average KL divergence; inf where the target cannot be met."""
        return math.inf if self.best is None else self.best.onavekl(kind)


@dataclass(frozen=True, eq=False, repr=False)
class ObjectiveDesign(Design):
    """κ, ridge, λ and noise for a fit with a formal guarantee; made by `optimal_design`.

    The fit minimises Σ_μ ℓ_κ(y_μ − f_μᵀx) + λ‖x‖₁ + (Λ/2)xᵀSx + ηᵀx with η ~ N(0, σ²S), as
    `solve_clipped` does. The shape is S = diag(v^γ)/mean(v^γ), rows have ‖f‖_{S⁻¹} ≤ R, and
    t = R²/Λ. Under privacy of records the scales v must be known without the data.

    - `covers` ("labels" or "records"): what the guarantee protects.
    - `t`: R²/Λ, which the accounting needs (`objective_delta`).
    - `radius`: R: in the limit of many columns the norm of every row, with `n_features` the median
      of the largest of M rows, so that no row is shrunk.
    - `point`: the prediction, with all settings that it is for.
    """

    covers: str
    epsilon: float
    delta: float
    t: float
    radius: float
    n_features: int | None

    @property
    def kappa(self) -> float:
        """Largest residual that is not clipped."""
        return self.point.kappa

    @property
    def noise(self) -> PowerLaw | MatrixPower:
        """The noise η, of mean variance σ²."""
        return _power(self.point.noise)

    @property
    def sigma(self) -> float:
        """Level σ of the noise."""
        return self.noise.sigma

    @property
    def ridge(self) -> PowerLaw | MatrixPower:
        """The ridge ΛS: `ridge.variances(v)` is the argument of `solve_clipped`.

        For correlated columns the argument is `ridge.covariance(C).matrix()`.
        """
        return _power(self.point.ridge)

    @property
    def gamma(self) -> float:
        """Power of v, or of the covariance, in the shape S."""
        return self.noise.gamma

    @property
    def explained(self) -> float:
        """Part of ρE[v], the variance of the labels that covariates explain, that the fit keeps."""
        return (self.null_error - self.E) / _signal(self.model)

    def __repr__(self) -> str:
        return (
            f"ObjectiveDesign(kappa={self.kappa:.4g}, t={self.t:.4g}, lam={self.lam:.4g}, "
            f"sigma={self.sigma:.4g}, gamma={self.gamma:.3g}; E={self.E:.4g} predicted, "
            f"{self.explained:.0%} of the signal explained, {self.rho_hat:.0%} of coefficients "
            f"nonzero; epsilon={self.epsilon:.4g}, delta={self.delta:.3g} for {self.covers})"
        )


def _power(shape: object) -> PowerLaw | MatrixPower:
    assert isinstance(shape, PowerLaw | MatrixPower)
    return shape


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


def to_document(design: OptimalDesign) -> dict[str, object]:
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


def from_document(document: object) -> SavedDesign:
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
