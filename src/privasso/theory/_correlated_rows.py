"""State evolution over grids of λ and noise levels, for a model with a covariance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privasso._validation import generator
from privasso.model import Model
from privasso.noise import MatrixPower, NoiseDesign
from privasso.theory._correlated import USUAL_COLUMNS, correlated_state_evolution
from privasso.theory._draws import ColumnNoise
from privasso.theory._fixed_point import FixedPointStatus


def correlated_rows(
    model: Model,
    lams: NDArray[np.float64],
    noise: ColumnNoise,
    sigmas: NDArray[np.float64],
    n_features: int | None,
    draws: int,
    rng: int | np.random.Generator | None,
) -> list[dict[str, Any]]:
    """One row per pair, with the columns of `tradeoff` and the standard error of E.

    From little noise to much at each λ, a point is the start of the next, and beyond the first
    level without an estimator there is none.
    """
    if not isinstance(noise, NoiseDesign | MatrixPower):
        raise ValueError(
            "noise must have a level, such as Isotropic(sigma) or noise.MatrixPower(sigma, gamma)"
        )
    rng = generator(rng)
    if model.covariance.n_columns is None:
        model = model.realised(USUAL_COLUMNS if n_features is None else n_features, rng)
    seed = int(rng.integers(2**63))
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for i, lam in enumerate(lams.tolist()):
        start, lost = None, None
        for j in np.argsort(sigmas, kind="stable").tolist():
            level = noise.with_sigma(float(sigmas[j]))
            fp = lost
            if fp is None:
                # The same seed everywhere: neighbours share their draws, and curves are smooth.
                own = np.random.default_rng(seed)
                fp = correlated_state_evolution(model, lam, level, None, draws, own, None, start)
            stable = fp.status is FixedPointStatus.STABLE
            if stable:
                start = fp.E / (1.0 + fp.V) ** 2, 1.0 / (1.0 + fp.V)
            elif model.alpha < 1.0:
                lost = fp
            known = stable and fp.onavekl_is_known
            found[i, j] = {
                "lam": lam, "sigma": float(sigmas[j]), "status": fp.status.value,
                "E": fp.E, "E_se": fp.standard_errors.E, "V": fp.V, "rho_hat": fp.rho_hat,
                "stability": fp.stability,
                "onavekl": fp.onavekl() if known else None,
                "onavekl_paper": fp.onavekl("paper") if known else None,
                "onavekl_bound": fp.onavekl("bound") if stable else None,
                "advantage": fp.advantage() if known else None,
            }  # fmt: skip
    return [found[i, j] for i in range(lams.size) for j in range(sigmas.size)]
