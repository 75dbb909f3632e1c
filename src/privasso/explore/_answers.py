"""What the explorer shows: numbers at a point, trade-offs, the phase map and the attack."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from privasso._text import finite
from privasso._types import Json
from privasso.explore._settings import COMPARED, Settings
from privasso.model import GivenCovariance
from privasso.noise import PowerLaw
from privasso.planning import ScreeningPrior, direct_r2
from privasso.queries import EMPTIED, LABEL_REPLACED
from privasso.theory import (
    Attack,
    FixedPointStatus,
    correlated_edge,
    phase_diagram,
    state_evolution,
    tradeoff,
)

if TYPE_CHECKING:
    import polars as pl

#: What a page is sent, as JSON.
Answer: TypeAlias = dict[str, Json]
#: Points of a curve, and how far below the edge of stability it starts.
_CURVE_POINTS, _CURVE_REACH = 16, 300.0
#: With more columns than this a point takes longer, and there are fewer of them.
_MANY, _FEWER = 200, 0.4
#: Ranges of the map, in units of E[v]·√α.
_MAP_LAM, _MAP_SIGMA = (0.01, 10.0), (0.003, 3.0)
#: Budgets of default fits, and their columns where these are many.
_FIT_EPSILONS, _MANY_COLUMNS = (0.3, 1.0, 3.0, 10.0), 1000
#: Cells of the map along each side, at once and when nothing moves.
_COARSE, _FINE = 10, 30

MEANING = {
    "stable": "The estimator exists.",
    "unstable": "No estimator exists: there is too much noise for this λ.",
    "infinite error": "The error grows without limit with the number of columns, because small "
    "columns get as much noise as large ones. Give the number of columns, or choose γ > 0.",
}


def point(settings: Settings) -> Answer:
    """Error, sparsity, stability and privacy at the settings."""
    fp = settings.prediction
    numbers = {
        "E": fp.E, "null_error": settings.label_variance, "label_noise": settings.sigma_xi,
        "rho_hat": fp.rho_hat, "stability": fp.stability, "onavekl": fp.onavekl(),
        "onavekl_paper": fp.onavekl("paper"), "advantage": fp.advantage(),
        "sigma": settings.level, "critical_noise": settings.edge,
        "label_epsilon": settings.label_epsilon(settings.level),
    }  # fmt: skip
    return {
        "status": fp.status.value,
        "meaning": MEANING[fp.status.value],
        **{name: finite(value) for name, value in numbers.items()},
    }


def default_fits(settings: Settings) -> Answer:
    """R² that fits with default settings are predicted to reach, whatever λ and noise are set.

    They are for independent columns of one scale. Without a number of columns there are many.
    """
    own = len(settings.scales) if settings.law == "own" else _MANY_COLUMNS
    n = settings.n_features or own
    m = max(1, round(settings.alpha * n))
    explained = 1.0 - settings.sigma_xi**2 / settings.label_variance
    prior = ScreeningPrior(
        max(1, round(settings.rho * n)), explained, label_deviation=1.0 / settings.width
    )
    delta, found = settings.delta, {}
    for name, neighbours in (("records", EMPTIED), ("labels", LABEL_REPLACED)):
        reached = (direct_r2(prior, x, delta, m, n, neighbours) for x in _FIT_EPSILONS)
        found[name] = [finite(r2) for r2 in reached]
    given = {"delta": delta, "width": settings.width, "epsilon": list(_FIT_EPSILONS)}
    return {"columns": n, "rows": m, **given, **found}


def curves(settings: Settings) -> Answer:
    """Error against leakage along the noise level, for several shapes of the noise at one λ."""
    shapes = dict(COMPARED)
    if settings.gamma not in shapes:
        shapes[settings.gamma] = f"yours, γ = {settings.gamma:g}"
    found = []
    for gamma, name in sorted(shapes.items()):
        own = replace(settings, gamma=gamma)
        levels = _levels(own)
        noise = _unit(own)
        table = tradeoff(own.model, own.lam, noise, levels, n_features=own.n_features)
        stable = table.filter(table["status"] == FixedPointStatus.STABLE.value)
        sigma = stable["sigma"].to_list()
        numbers = {x: _numbers(stable[x]) for x in ("E", "onavekl", "advantage")}
        numbers |= {"sigma": sigma, "epsilon": [finite(own.label_epsilon(x)) for x in sigma]}
        found.append({"gamma": gamma, "name": name, "yours": gamma == settings.gamma, **numbers})
    return {"curves": found, **column_noise(settings)}


def column_noise(settings: Settings) -> Answer:
    """Deviation of the noise at the usual scales of columns, for noise of level 1."""
    law = settings.model.scales
    scales = np.unique(law.quantile(np.linspace(0.01, 0.99, 25)))
    scales = scales[scales > 0.0]
    shapes = sorted({*COMPARED, settings.gamma})
    with np.errstate(divide="ignore"):
        mean = {gamma: law.moment(gamma) for gamma in shapes}
    return {
        "scales": scales.tolist(),
        "deviation": {
            f"{gamma:g}": (scales**gamma / math.sqrt(mean[gamma])).tolist() for gamma in shapes
        },
    }


def phase_map(settings: Settings, size: int) -> Answer:
    """Error, leakage and advantage over λ and σ_η, with where no estimator exists."""
    unit = _scale(settings)
    lams = unit * np.geomspace(*_MAP_LAM, size)
    sigmas = unit * np.geomspace(*_MAP_SIGMA, size)
    table = phase_diagram(
        settings.model, lams, _unit(settings), sigmas, n_features=settings.n_features
    )
    codes = {"stable": 0, "unstable": 1, "infinite error": 2}
    return {
        "lam": lams.tolist(),
        "sigma": sigmas.tolist(),
        "status": [codes[status] for status in table["status"]],
        **{name: _numbers(table[name]) for name in ("E", "onavekl", "advantage", "rho_hat")},
    }


def attack(settings: Settings) -> Answer:
    """ROC curves of the best membership attack, for records at large and for an exposed one."""
    fp = settings.prediction
    if fp.status is not FixedPointStatus.STABLE:
        return {"curves": []}
    found = fp.attack()
    exposed = {
        "all records": found,
        "a record more exposed than 99 % of them": found.of_quantile(0.99),
    }
    return {
        "curves": [{"name": name, "auc": one.auc, **_roc(one)} for name, one in exposed.items()]
    }


def correlated(settings: Settings) -> Answer:
    """The numbers at the settings for correlated columns, and for as many independent ones."""
    if settings.correlation == "none":
        return {"columns": None}
    model, count = settings.correlated, settings.n_correlated
    fp = state_evolution(model, settings.lam, settings.noise, n_features=count, rng=0)
    edge = correlated_edge(model, settings.noise, n_features=count, rng=0)
    errors = fp.standard_errors
    stable = fp.status is FixedPointStatus.STABLE
    numbers = {
        "E": (fp.E, errors.E),
        "rho_hat": (fp.rho_hat, errors.rho_hat),
        "stability": (fp.stability, errors.stability),
        "onavekl": (fp.onavekl(), errors.onavekl) if stable else (math.inf, 0.0),
        "advantage": (fp.advantage(), 0.0),
        "critical_noise": (settings.lam / edge.ratio if edge.ratio > 0.0 else math.inf, 0.0),
    }
    if isinstance(model.covariance, GivenCovariance):
        scales = np.sqrt(model.covariance.diagonal).tolist()
        same = replace(settings, law="own", scales=tuple(scales), n_features=None)
    else:
        same = replace(settings, n_features=count)
    alone = point(same)
    return {
        "columns": count,
        "correlated": {
            "status": fp.status.value,
            "errors": {name: finite(error) for name, (_, error) in numbers.items()},
            **{name: finite(value) for name, (value, _) in numbers.items()},
        },
        "independent": {name: alone[name] for name in ("status", *numbers)},
    }


ANSWERS: dict[str, Callable[[Settings], Answer]] = {
    "point": point,
    "curves": curves,
    "map": lambda settings: phase_map(settings, _count(settings, _COARSE)),
    "fine map": lambda settings: phase_map(settings, _count(settings, _FINE)),
    "attack": attack,
    "correlated": correlated,
    "fits": default_fits,
    # What one move of a slider changes, in one answer: each answer waits for the browser once.
    "numbers": lambda settings: {"point": point(settings), "curves": curves(settings)},
    "everything": lambda settings: {
        **ANSWERS["numbers"](settings),
        "map": ANSWERS["map"](settings),
    },
}


def answer(what: str, settings: Settings) -> Answer:
    """One of `ANSWERS`, with the warnings that were given on the way as notes."""
    if what not in ANSWERS:
        raise ValueError(f"there is no answer to {what!r}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ANSWERS[what](settings)
    return {**found, "notes": sorted({str(each.message) for each in caught})}


def _count(settings: Settings, usual: int) -> int:
    """How many points to compute, fewer where each takes long."""
    columns = settings.n_features or len(settings.scales) * (settings.law == "own")
    return usual if columns <= _MANY else round(_FEWER * usual)


def _unit(settings: Settings) -> PowerLaw:
    return PowerLaw(1.0, settings.gamma)


def _scale(settings: Settings) -> float:
    """The size that λ and σ_η usually have."""
    return settings.model.scales.moment(1) * math.sqrt(settings.alpha)


def _levels(settings: Settings) -> np.ndarray:
    """Noise levels of a curve, up to the edge of stability."""
    edge = settings.edge
    top = 30.0 * _scale(settings)
    high = min(0.995 * edge, top) if edge > 0.0 else top
    return np.geomspace(high / _CURVE_REACH, high, _count(settings, _CURVE_POINTS))


def _roc(found: Attack) -> dict[str, list[float]]:
    """False- and true-positive rates at thresholds that cover the curve."""
    reach = 40.0 * (1.0 + math.sqrt(found.information)) if found.information < 1e6 else 1e6
    grid = np.sinh(np.linspace(-1.0, 1.0, 121) * math.asinh(reach))
    false, true = found.rates(grid)
    keep = (false > 1e-6) & (false < 1.0 - 1e-9)
    return {"false": [1.0, *false[keep].tolist()], "true": [1.0, *true[keep].tolist()]}


def _numbers(column: pl.Series) -> list[float | None]:
    return [finite(value) for value in column.to_list()]
