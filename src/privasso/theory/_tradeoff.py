"""State evolution over grids, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privasso._validation import generator, integer, positive_float, real_array
from privasso.model import Model
from privasso.noise import MatrixPower, NoiseDesign
from privasso.theory._attack import advantages
from privasso.theory._correlated import correlated_state_evolution, given_columns
from privasso.theory._draws import ColumnNoise
from privasso.theory._fixed_point import STATUS, FixedPointStatus
from privasso.theory._onavekl import joint
from privasso.theory._points import INFINITE, solve_grid
from privasso.theory._state_evolution import check

if TYPE_CHECKING:
    import polars as pl


def tradeoff(
    model: Model,
    lam: float,
    noise: ColumnNoise,
    sigmas: ArrayLike,
    *,
    n_features: SupportsIndex | None = None,
    draws: SupportsIndex = 8,
    rng: int | np.random.Generator | None = None,
) -> pl.DataFrame:
    """Predict error and OnAveKL at several noise levels.

    More noise at first lowers the OnAveKL and mostly raises E. Towards the critical level both
    grow, so beyond some level more noise is worse in both.

    Parameters
    ----------
    model : Model
    lam : float
        Regularisation λ > 0.
    noise : NoiseDesign
        Only its shape matters; the levels are `sigmas`.
    sigmas : array_like, shape (K,)
        Noise levels, zero or more.
    n_features : int, optional
        As in `state_evolution`.
    draws, rng
        For a model with a covariance, as in `state_evolution`. The same draws serve all points, and
        the table has the column ``E_se`` in addition.

    Returns
    -------
    polars.DataFrame
        One row per level, in the order given: ``lam, sigma, status, E, V, rho_hat, stability,
        onavekl, onavekl_paper, advantage``, the last that of `FixedPoint.attack`. Null stands for
        a number that does not exist, inf for an infinite one.

    Examples
    --------
    >>> import privasso as pv
    >>> table = pv.tradeoff(pv.Model(), 0.2, pv.Gram(1.0), [0.02, 0.07, 0.2, 0.4])
    >>> table.select("sigma", "status", table["E"].round(4), table["onavekl"].round(3)).rows()
    [(0.02, 'stable', 0.0239, 0.816), (0.07, 'stable', 0.0282, 0.291), \
(0.2, 'stable', 0.7439, 3.371), (0.4, 'unstable', inf, None)]
    """
    lam = positive_float("lam", lam)
    return _table(model, np.array([lam]), noise, sigmas, n_features, draws, rng)


def phase_diagram(
    model: Model,
    lams: ArrayLike,
    noise: ColumnNoise,
    sigmas: ArrayLike,
    *,
    n_features: SupportsIndex | None = None,
    draws: SupportsIndex = 8,
    rng: int | np.random.Generator | None = None,
) -> pl.DataFrame:
    """Predict error and OnAveKL at every pair of λ and noise level.

    The table has the columns of `tradeoff`. The edge of stability is the straight line
    λ = `critical_lambda_ratio` · σ.

    The arguments are those of `tradeoff`, with an array of λ; there is one block of K levels per λ.

    Examples
    --------
    >>> import privasso as pv
    >>> table = pv.phase_diagram(pv.Model(), [0.1, 0.2], pv.Gram(1.0), [0.1, 0.2])
    >>> table.select("lam", "sigma", "status").rows()
    [(0.1, 0.1, 'stable'), (0.1, 0.2, 'unstable'), (0.2, 0.1, 'stable'), (0.2, 0.2, 'stable')]
    """
    lams = real_array("lams", lams, ndim=1)
    if np.min(lams) <= 0.0:
        raise ValueError("lams must be positive")
    return _table(model, lams, noise, sigmas, n_features, draws, rng)


def _table(
    model: Model,
    lams: NDArray[np.float64],
    noise: ColumnNoise,
    sigmas: ArrayLike,
    n_features: SupportsIndex | None,
    draws: SupportsIndex,
    rng: int | np.random.Generator | None,
) -> pl.DataFrame:
    import polars as pl  # only tables need it, and it takes a while to import

    levels = real_array("sigmas", sigmas, ndim=1)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    if isinstance(model, Model) and model.covariance is not None:
        size = integer("draws", draws, minimum=2)
        return pl.DataFrame(_correlated_rows(model, lams, noise, levels, count, size, rng))
    noise = check(model, noise)
    for level in levels:
        noise.with_sigma(float(level))  # refuses a negative level, and one that squares to zero
    lam, sigma = (grid.ravel() for grid in np.meshgrid(lams, levels, indexing="ij"))
    # Along a row of equal λ from little noise to much, each point is a good start for the next.
    order = np.lexsort((sigma, lam))
    points = solve_grid(model, lam[order], sigma[order], noise, count)
    back = np.argsort(order)
    status = points.status[back]
    E, V, rho_hat, paper = (
        column[back] for column in (points.E, points.V, points.rho_hat, points.component_wise)
    )
    with np.errstate(invalid="ignore"):
        exact = np.where(status == INFINITE, np.inf, joint(paper, V))
    return pl.DataFrame(
        {
            "lam": lam,
            "sigma": sigma,
            "status": [STATUS[int(code)].value for code in status],
            "E": E,
            "V": V,
            "rho_hat": rho_hat,
            "stability": rho_hat / model.alpha,
            "onavekl": exact,
            "onavekl_paper": paper,
            "advantage": _advantages(V, paper, status),
        }
    ).with_columns(pl.col("onavekl", "onavekl_paper", "advantage").fill_nan(None))


def _advantages(
    V: NDArray[np.float64], paper: NDArray[np.float64], status: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Advantage of the best membership attack; NaN where no estimate or no finite error exists."""
    found = np.full(V.shape, np.nan)
    there = (status != INFINITE) & np.isfinite(V) & ~np.isnan(paper)
    found[there] = advantages(V[there], paper[there] * (1.0 + V[there]) ** 2)
    return found


def _correlated_rows(
    model: Model,
    lams: NDArray[np.float64],
    noise: ColumnNoise,
    sigmas: NDArray[np.float64],
    n_features: int | None,
    draws: int,
    rng: int | np.random.Generator | None,
) -> list[dict[str, object]]:
    """One row per pair, with the columns of `tradeoff` and the standard error of E.

    From little noise to much at each λ, a point is the start of the next, and beyond the first
    level without an estimator there is none.
    """
    if not isinstance(noise, NoiseDesign | MatrixPower):
        raise ValueError(
            "noise must have a level, such as Isotropic(sigma) or noise.MatrixPower(sigma, gamma)"
        )
    rng = generator(rng)
    model = given_columns(model, noise, n_features, rng)
    seed = int(rng.integers(2**63))
    found: dict[tuple[int, int], dict[str, object]] = {}
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
