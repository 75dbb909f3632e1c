"""The same page from a table: predictions on a grid of settings, for who has installed nothing."""

from __future__ import annotations

import base64
import json
import warnings
from itertools import product

import numpy as np

from privasso._text import finite
from privasso.explore._answers import MEANING, column_noise, default_fits
from privasso.explore._page import EPSILON_CHOICE, asset, document, fieldset, law_choice, slider
from privasso.explore._settings import COMPARED, DATA, ESTIMATE, NOISE, Control, Settings
from privasso.noise import PowerLaw
from privasso.theory import QuadratureWarning, critical_lambda_ratio, phase_diagram

_FIELDS = ("E", "onavekl", "onavekl_paper", "advantage", "rho_hat")
#: Larger values have no place in single precision, nor in a plot.
_LARGEST = 1e30
#: Laws of the table; the names are those of the controls.
_LAWS = {
    "uniform": Settings(law="uniform"),
    "lognormal": Settings(law="lognormal"),
    "constant": Settings(law="constant"),
}
_ALPHA, _RHO = (0.3, 0.5, 2.0, 10.0), (0.1, 0.3)
_LAM = tuple(float(f"{x:.3g}") for x in np.geomspace(0.02, 2.0, 17))
_SIGMA = tuple(float(f"{x:.3g}") for x in np.geomspace(0.01, 1.0, 17))
#: Values of the sliders that need no table.
_FREE = {"delta": [1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3], "width": [3.0, 6.0, 10.0, 20.0, 50.0]}


def static_page(
    *,
    alpha: tuple[float, ...] = _ALPHA,
    rho: tuple[float, ...] = _RHO,
    lam: tuple[float, ...] = _LAM,
    sigma: tuple[float, ...] = _SIGMA,
) -> str:
    """Return a page that holds the predictions at every pair of its values; it asks nobody.

    `alpha`, `rho`, `lam`, `sigma`: values of the sliders, in increasing order.
    """
    axes = {
        "law": list(_LAWS),
        "alpha": list(alpha),
        "rho": list(rho),
        "gammas": list(COMPARED),
        "lam": list(lam),
        "sigma": list(sigma),
    }
    values, notes = _predictions(axes)
    nodes, weights = np.polynomial.legendre.leggauss(8)
    told = {
        "axes": axes,
        "names": list(COMPARED.values()),
        "meaning": list(MEANING.values()),
        "sigma_xi": Settings().sigma_xi,
        "notes": notes,
        "laws": {law: _about(settings, alpha) for law, settings in _LAWS.items()},
        "fits": _fits(alpha, rho),
        "gauss": {"nodes": nodes.tolist(), "weights": weights.tolist()},
        "values": values,
    }
    controls = _controls(axes)
    spec = {
        "controls": {name: values for name, (_, values) in controls.items()},
        "compared": list(COMPARED),
        "fine": False,
    }
    sliders = {name: slider(control, exact=False) for name, (control, _) in controls.items()}
    places = {
        "INTRO": "This page holds predictions at the values that its sliders have, for label noise "
        f"of {Settings().sigma_xi:g}; after installing privasso, <code>privasso explore</code> "
        "computes any other, for scales of your own, for the level of noise that (ε, δ) asks for, "
        "and for correlated columns.",
        "CONTROLS": fieldset("Estimate", sliders["lam"], sliders["gamma"], sliders["sigma"])
        + fieldset("Data", sliders["alpha"], sliders["rho"], law_choice(_LAWS, "uniform"))
        + fieldset("ε of the labels", sliders["delta"], sliders["width"]),
        "EPSILON": EPSILON_CHOICE,
        "ATTACK": asset("attack.html"),
        "CORRELATED": "",
        "COPY": "",
    }
    text, _ = document(
        spec,
        ["plots.js", "normal.js", "table.js", "correlated.js", "app.js"],
        places,
        constants=f"const TABLE = {json.dumps(told, ensure_ascii=False, allow_nan=False)};",
    )
    return text


def _predictions(axes: dict[str, list[float]]) -> tuple[dict[str, str], list[str]]:
    """Arrays of all predictions in base 64, and remarks on them."""
    values: dict[str, list[np.ndarray]] = {name: [] for name in (*_FIELDS, "status")}
    codes = {status: code for code, status in enumerate(MEANING)}
    notes: set[str] = set()
    for law, a, r, gamma in product(_LAWS, axes["alpha"], axes["rho"], COMPARED):
        model = Settings(alpha=a, rho=r, law=law).model
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", QuadratureWarning)
            table = phase_diagram(model, axes["lam"], PowerLaw(1.0, gamma), axes["sigma"])
        notes |= {f"Near the edge of stability, {each.message}." for each in caught}
        for name in _FIELDS:
            column = table[name].fill_null(np.nan).to_numpy()
            values[name].append(np.where(column < _LARGEST, column, np.inf).astype("<f4"))
        values["status"].append(np.array([codes[x] for x in table["status"]], dtype=np.uint8))
    coded = {
        name: base64.b64encode(np.concatenate(parts).tobytes()).decode("ascii")
        for name, parts in values.items()
    }
    return coded, sorted(notes)


def _fits(alpha: tuple[float, ...], rho: tuple[float, ...]) -> dict[str, dict[str, object]]:
    """Default fits for each kind of data, at the δ and the bounds that sliders begin with."""
    return {
        f"{law} {a:g} {r:g}": default_fits(Settings(law=law, alpha=a, rho=r))
        for law, a, r in product(_LAWS, alpha, rho)
    }


def _controls(axes: dict[str, list[float]]) -> dict[str, tuple[Control, dict[str, object]]]:
    """The controls of the page, each with its values and where it starts."""
    known = {c.name: c for c in (*DATA, *ESTIMATE, *NOISE["level"], *NOISE["labels"])}
    axes = axes | {"gamma": axes["gammas"]} | _FREE
    found = {}
    for name in ("lam", "gamma", "sigma", "alpha", "rho", *_FREE):
        values = axes[name]
        start = min(values, key=lambda value: abs(value - known[name].start))
        found[name] = known[name], {"name": name, "values": values, "start": start}
    return found


def _about(settings: Settings, alpha: tuple[float, ...]) -> dict[str, object]:
    """Facts about a law: mean of v, noise by scale, λ/σ at the edge, sensitivity of labels."""
    ratio, sensitivity = {}, {}
    for a, gamma in product(alpha, COMPARED):
        one = Settings(alpha=a, law=settings.law, gamma=gamma)
        key = f"{a:g} {gamma:g}"
        ratio[key] = finite(critical_lambda_ratio(one.model, PowerLaw(1.0, gamma)))
        sensitivity[key] = finite(one.label_sensitivity)
    return {
        "mean": settings.model.scales.moment(1),
        "ratio": ratio,
        "sensitivity": sensitivity,
        **column_noise(settings),
    }
