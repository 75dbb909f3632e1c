"""The price of having been wrong: about the model, or about the scales."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex

from privasso._validation import integer, nonnegative_float, positive_float
from privasso.design._mismatch import mismatched_state_evolution
from privasso.design._optimal import optimal_design
from privasso.design._result import InfeasibleError, OptimalDesign
from privasso.model import Model
from privasso.noise import NoiseDesign
from privasso.theory import FixedPointStatus

if TYPE_CHECKING:
    import polars as pl


def sensitivity(
    design: OptimalDesign | NoiseDesign,
    models: Sequence[Model],
    *,
    lam: float | None = None,
    taus: Sequence[float] = (0.0,),
    n_features: SupportsIndex | None = None,
) -> pl.DataFrame:
    """What a design does in models that it was not made for, and what the error cost.

    Parameters
    ----------
    design : OptimalDesign or NoiseDesign
        λ and noise are used as they are; nothing is tuned again.
    models : sequence of Model
        What the data may really be.
    lam : float, optional
        λ; needed with a noise design, and taken from an `OptimalDesign` otherwise.
    taus : sequence of float
        Errors of the scales that the noise follows, v̂ = v e^(τZ).
    n_features : int, optional
        As in `state_evolution`; taken from an `OptimalDesign` if not given.

    Returns
    -------
    polars.DataFrame
        One row a model and τ: ``alpha, rho, sigma_xi, scales, tau, status, E, rho_hat,
        stability, onavekl``, then ``best_E``, the least error a power law has in that model at
        the same OnAveKL with the right scales and λ free, and ``regret``, E divided by it. Null
        stands for what does not exist.

    Examples
    --------
    >>> import privasso as pv
    >>> from privasso.design import sensitivity
    >>> model = pv.Model(scales=pv.LogNormal(0.0, 0.5))
    >>> best = pv.optimal_design(model, max_onavekl=2.0)
    >>> truth = [pv.Model(rho=rho, scales=model.scales) for rho in (0.05, 0.1, 0.2)]
    >>> table = sensitivity(best, truth)
    >>> table.select("rho", table["onavekl"].round(2), table["regret"].round(3)).rows()
    [(0.05, 0.98, 1.005), (0.1, 2.0, 1.0), (0.2, 5.01, 1.001)]
    """
    import polars as pl

    if isinstance(design, OptimalDesign):
        noise, lam = design.noise, design.lam if lam is None else lam
        n_features = design.n_features if n_features is None else n_features
    else:
        noise = design
        if lam is None:
            raise ValueError("a noise design needs lam; an OptimalDesign brings its own")
    lam = positive_float("lam", lam)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    taus = [nonnegative_float("taus", tau) for tau in taus]
    rows = [_row(noise, lam, model, tau, count) for model in models for tau in taus]
    if not rows:
        raise ValueError("models and taus must not be empty")
    return pl.DataFrame(rows)


def _row(
    noise: NoiseDesign, lam: float, model: Model, tau: float, n_features: int | None
) -> dict[str, object]:
    fp = mismatched_state_evolution(model, lam, noise, tau, n_features=n_features)
    stable = fp.status is FixedPointStatus.STABLE
    leak = fp.onavekl() if stable else math.nan
    best = None
    if stable and 0.0 < leak < math.inf:
        try:
            best = optimal_design(model, max_onavekl=leak, n_features=n_features).E
        except InfeasibleError:  # nothing to compare with
            best = None
    return {
        "alpha": model.alpha,
        "rho": model.rho,
        "sigma_xi": model.sigma_xi,
        "scales": repr(model.scales),
        "tau": tau,
        "status": fp.status.value,
        "E": fp.E,
        "rho_hat": fp.rho_hat,
        "stability": fp.stability,
        "onavekl": leak if stable else None,
        "best_E": best,
        "regret": None if best is None else fp.E / best,
    }
