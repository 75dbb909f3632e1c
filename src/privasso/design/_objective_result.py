"""The settings of a fit by objective perturbation, with what is predicted for them."""

from __future__ import annotations

from dataclasses import dataclass

from privasso.design._result import NEARLY_NULL
from privasso.model import Model
from privasso.noise import MatrixPower, PowerLaw
from privasso.theory import FixedPoint


@dataclass(frozen=True, eq=False, repr=False)
class ObjectiveDesign:
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
    point: FixedPoint
    n_features: int | None

    @property
    def model(self) -> Model:
        """What the data are expected to be."""
        return self.point.model

    @property
    def kappa(self) -> float:
        """Largest residual that is not clipped."""
        return self.point.kappa

    @property
    def lam(self) -> float:
        """Regularisation λ."""
        return self.point.lam

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
    def explained(self) -> float:
        """Part of ρE[v], the variance of the labels that covariates explain, that the fit keeps."""
        return (self.null_error - self.E) / _signal(self.model)

    @property
    def nearly_null(self) -> bool:
        """Whether releasing nothing would be about as accurate."""
        return NEARLY_NULL * self.null_error <= self.E

    def __repr__(self) -> str:
        return (
            f"ObjectiveDesign(kappa={self.kappa:.4g}, t={self.t:.4g}, lam={self.lam:.4g}, "
            f"sigma={self.sigma:.4g}, gamma={self.gamma:.3g}; E={self.E:.4g} predicted, "
            f"{self.explained:.0%} of the signal explained, {self.rho_hat:.0%} of coefficients "
            f"nonzero; epsilon={self.epsilon:.4g}, delta={self.delta:.3g} for {self.covers})"
        )


def _signal(model: Model) -> float:
    return model.rho * model.scales.moment(1.0)


def _power(shape: object) -> PowerLaw | MatrixPower:
    assert isinstance(shape, PowerLaw | MatrixPower)
    return shape
