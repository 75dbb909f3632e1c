"""What records cost and gain by private ranges, scales, shapes and statistics.

``python -m bench.scales --write`` renews its tables in `docs/data` and its figure.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import polars as pl

import privasso as pv
from bench.page import DATA, renew

DELTA, Y_BOUNDS = 1e-6, (-4.0, 4.0)
ROWS = (500, 1000, 2000, 5000, 20_000, 100_000)
REPEATS, TEST_ROWS = 10, 2000
#: How many times too wide the bounds are, besides the known ones.
WIDTHS = (10.0, 100.0, 1000.0)
#: The part of the R² with known scales that is asked for in the table of rows.
ENOUGH = 0.9


def sampled(m: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns of scales over four orders of magnitude, labels with R² = 0.8, and known bounds.

    A third of the columns is normal around zero, a third positive and skewed, and a third normal
    around five deviations from zero. A third of them, at least three, has an effect.
    """
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((m, n))
    skewed = np.arange(n) % 3 == 1
    Z[:, skewed] = (rng.gamma(2.0, 1.0, (m, int(skewed.sum()))) - 2.0) / np.sqrt(2.0)
    centre = np.choose(np.arange(n) % 3, [0.0, np.sqrt(2.0), 5.0])
    scale = 10.0 ** rng.uniform(-2.0, 2.0, n)
    effects = max(3, n // 3)
    x = np.zeros(n)
    x[rng.permutation(n)[:effects]] = rng.choice([-1.0, 1.0], effects) * np.sqrt(0.8 / effects)
    y = Z @ x + np.sqrt(0.2) * rng.standard_normal(m)
    reach = np.stack([np.where(skewed, -centre, -4.0), np.full(n, 4.0)], axis=1)
    return (Z + centre) * scale, y, (reach + centre[:, None]) * scale[:, None]


def widened(bounds: np.ndarray, factor: float) -> np.ndarray:
    """Bounds so many times as wide around the same middle; a bound at zero stays there."""
    middle = bounds.mean(axis=1, keepdims=True)
    wide = middle + factor * (bounds - middle)
    wide[bounds[:, 0] == 0.0] = factor * bounds[bounds[:, 0] == 0.0]
    return wide


def contenders(bounds: np.ndarray) -> dict[str, dict[str, Any]]:
    """Settings of `RecordDP` by name."""
    given = {f"given, {f:g} × too wide": {"bounds": widened(bounds, f)} for f in WIDTHS}
    return {
        "known": {"bounds": bounds},
        "private bounds": {"bounds": "private"},
        "private bounds and scales": {"bounds": "private", "scales": "private"},
        f"private scales, {WIDTHS[-1]:g} × too wide": {
            "bounds": widened(bounds, WIDTHS[-1]),
            "scales": "private",
        },
        **given,
    }


def score(
    m: int, n: int, epsilon: float, seed: int, names: tuple[str, ...] = ()
) -> dict[str, float]:
    """R² on new rows of each contender, or of those named."""
    X, y, bounds = sampled(m + TEST_ROWS, n, seed)
    return {
        name: _fitted(X, y, m, epsilon, seed, **settings)
        for name, settings in contenders(bounds).items()
        if not names or name in names
    }


def fits() -> pl.DataFrame:
    """Mean R² over the repeats by number of rows, ten columns, ε = 1; and the figure of it."""
    runs = {m: [score(m, 10, 1.0, seed) for seed in range(REPEATS)] for m in ROWS}
    names = list(runs[ROWS[0]][0])
    curves = {name: [[run[name] for run in runs[m]] for m in ROWS] for name in names}
    draw({name: np.array(values) for name, values in curves.items()})
    return pl.DataFrame(
        [
            {"rows": f"{m:,}", **{name: float(np.mean(curves[name][k])) for name in names}}
            for k, m in enumerate(ROWS)
        ]
    )


def mechanisms() -> pl.DataFrame:
    """R² of a perturbed objective and of noisy statistics, known bounds, ten columns."""
    table = []
    for m in ROWS:
        row: dict[str, Any] = {"rows": f"{m:,}"}
        for epsilon in (1.0, 3.0):
            for name in ("objective", "statistics"):
                found = [alone(m, 10, epsilon, seed, mechanism=name) for seed in range(REPEATS)]
                row[f"{name}, ε = {epsilon:g}"] = float(np.mean(found))
        table.append(row)
    return pl.DataFrame(table)


def shapes() -> pl.DataFrame:
    """R² for correlated columns: shapes that are plain, private, or of 300 public rows."""
    table = []
    for n, rho, m in itertools.product((10, 30), (0.0, 0.95), (1000, 5000, 20_000)):
        public, _ = correlated(300, n, rho, 1000)
        variants = {
            "no shape": {},
            "private scales": {"scales": "private"},
            "private shape": {"shape": "private"},
            "private scales and shape": {"scales": "private", "shape": "private"},
            "public rows": {"shape": public},
        }
        row: dict[str, Any] = {"columns": n, "correlation": rho, "rows": f"{m:,}"}
        for name, settings in variants.items():
            found = []
            for seed in range(5):
                X, y = correlated(m + TEST_ROWS, n, rho, seed)
                bounds = np.tile([-4.0, 4.0], (n, 1))
                found.append(_fitted(X, y, m, 1.0, seed, bounds=bounds, **settings))
            row[name] = float(np.mean(found))
        table.append(row)
    return pl.DataFrame(table)


def correlated(m: int, n: int, rho: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns with correlation ρ^|i − j|, three of which explain four fifths of y."""
    rng = np.random.default_rng(seed)
    C = rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    X = rng.standard_normal((m, n)) @ np.linalg.cholesky(C).T
    x = np.zeros(n)
    x[:3] = [0.5, -0.4, 0.4]
    x *= np.sqrt(0.8 / (x @ C @ x))
    return X, X @ x + np.sqrt(0.2) * rng.standard_normal(m)


def alone(m: int, n: int, epsilon: float, seed: int, **settings: Any) -> float:
    """R² on new rows with known bounds."""
    X, y, bounds = sampled(m + TEST_ROWS, n, seed)
    return _fitted(X, y, m, epsilon, seed, bounds=bounds, **settings)


def _fitted(
    X: np.ndarray, y: np.ndarray, m: int, epsilon: float, seed: int, **settings: Any
) -> float:
    privacy = pv.RecordDP(epsilon, DELTA, y_bounds=Y_BOUNDS, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = pv.PrivateLasso(privacy=privacy, random_state=seed).fit(X[:m], y[:m])
    return fit.score(X[m:], y[m:])


def pays() -> pl.DataFrame:
    """Rows from which on private scales reach nine tenths of the R² of known ones."""
    table = []
    grid = [round(x) for x in 250 * 2.0 ** (0.5 * np.arange(19))]
    for n in (5, 20, 50):
        row: dict[str, Any] = {"columns": n}
        for epsilon in (0.5, 1.0, 3.0):
            for name in ("private bounds", "private bounds and scales"):
                row[f"{name}, ε = {epsilon:g}"] = _first(grid, n, epsilon, name)
        table.append(row)
    return pl.DataFrame(table)


def _first(grid: list[int], n: int, epsilon: float, name: str) -> str:
    for m in grid:
        runs = [score(m, n, epsilon, seed, ("known", name)) for seed in range(5)]
        known, found = (np.mean([run[key] for run in runs]) for key in ("known", name))
        if known > 0.1 and found >= ENOUGH * known:
            return f"{m:,}"
    return f"> {grid[-1]:,}"


def draw(curves: dict[str, np.ndarray]) -> None:
    from privasso.figures import BLUE, GREEN, GREY, ORANGE, SKY, figure, save

    styles = {
        "known": ("black", "-", "o"),
        "private bounds": (SKY, "-", "s"),
        "private bounds and scales": (BLUE, "-", "^"),
        f"private scales, {WIDTHS[-1]:g} × too wide": (GREEN, "--", "v"),
        **{
            f"given, {f:g} × too wide": (colour, ":", "D")
            for f, colour in zip(WIDTHS, (ORANGE, "#E69F00", GREY), strict=True)
        },
    }
    sheet = figure(8.0, 4.6)
    axes = sheet.subplots()
    for name, (colour, line, marker) in styles.items():
        values = curves[name]
        error = values.std(axis=1) / np.sqrt(values.shape[1])
        axes.errorbar(
            ROWS, values.mean(axis=1), error, color=colour, linestyle=line, marker=marker,
            markersize=4, capsize=2, label=name,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(ROWS, [f"{m:,}" for m in ROWS])
    axes.minorticks_off()
    axes.set_ylim(-0.1, 0.85)
    axes.axhline(0.0, color=GREY, linewidth=0.5)
    axes.set_xlabel("rows")
    axes.set_ylabel("R² on new rows")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(sheet, DATA.parent / "images" / "private-bounds.png")


TABLES = {"fits": fits, "pays": pays, "mechanisms": mechanisms, "shapes": shapes}


if __name__ == "__main__":
    renew("python -m bench.scales", __doc__, TABLES, "scales")
