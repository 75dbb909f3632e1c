"""What a design does in models and with scales that it was not made for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex

from privasso._validation import integer, nonnegative_float, positive_float
from privasso.design._limits import MaxLeakage
from privasso.design._optimal import optimal_design
from privasso.design._result import InfeasibleError
from privasso.model import Model
from privasso.noise import NoiseDesign
from privasso.theory import FixedPointStatus, mismatched_state_evolution

if TYPE_CHECKING:
    import polars as pl


def misspecification_table(
    models: Sequence[Model],
    lam: float,
    noise: NoiseDesign,
    *,
    scale_errors: Sequence[float] = (0.0,),
    n_features: SupportsIndex | None = None,
) -> pl.DataFrame:
    """Predict one choice of λ and noise in several models, and compare with the best in each.

    Parameters
    ----------
    models : sequence of Model
        What the data may really be.
    lam : float
        Regularisation λ > 0; it is not tuned again.
    noise : NoiseDesign
        The noise with its level; it is not tuned again.
    scale_errors : sequence of float
        Errors τ of the scales that the noise follows, v̂ = v e^(τZ).
    n_features : int, optional
        As in `state_evolution`; give that of `optimal_design` if it had one.

    Returns
    -------
    polars.DataFrame
        One row per model and scale error: ``alpha, rho, sigma_xi, scales, scale_error, status, E,
        rho_hat, stability, onavekl``, then ``best_E``, the least error a power law has in that
        model at the same OnAveKL with the right scales and λ free, and ``regret``, E divided by
        it. Null stands for what does not exist.

    Examples
    --------
    A design for ρ = 0.1, used where ρ is really 0.05, 0.1 and 0.2:

    >>> import privasso as pv
    >>> model = pv.Model(scales=pv.LogNormal(0.0, 0.5))
    >>> best = pv.optimal_design(model, pv.MaxLeakage(2.0))
    >>> truth = [pv.Model(rho=rho, scales=model.scales) for rho in (0.05, 0.1, 0.2)]
    >>> table = pv.misspecification_table(truth, best.lam, best.noise)
    >>> table.select("rho", table["onavekl"].round(2), table["regret"].round(3)).rows()
    [(0.05, 0.98, 1.005), (0.1, 2.0, 1.0), (0.2, 5.01, 1.001)]
    """
    import polars as pl

    lam = positive_float("lam", lam)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    errors = [nonnegative_float("scale_errors", error) for error in scale_errors]
    rows = [_row(model, lam, noise, error, count) for model in models for error in errors]
    if not rows:
        raise ValueError("models and scale_errors must not be empty")
    return pl.DataFrame(rows)


def _row(
    model: Model, lam: float, noise: NoiseDesign, scale_error: float, n_features: int | None
) -> dict[str, object]:
    fp = mismatched_state_evolution(model, lam, noise, scale_error, n_features=n_features)
    stable = fp.status is FixedPointStatus.STABLE
    leak = fp.onavekl() if stable else math.nan
    best = None
    if stable and 0.0 < leak < math.inf:
        try:
            best = optimal_design(model, MaxLeakage(leak), n_features=n_features).E
        except InfeasibleError:  # nothing to compare with
            best = None
    return {
        "alpha": model.alpha,
        "rho": model.rho,
        "sigma_xi": model.sigma_xi,
        "scales": repr(model.scales),
        "scale_error": scale_error,
        "status": fp.status.value,
        "E": fp.E,
        "rho_hat": fp.rho_hat,
        "stability": fp.stability,
        "onavekl": leak if stable else None,
        "best_E": best,
        "regret": None if best is None else fp.E / best,
    }
