"""Columns of zeros and ones measured from zero, beside the same columns as numbers in [0, 1].

``python -m bench.origins`` writes ``docs/data/origins.csv``. It needs the tables of
``pip install --group real``. Lines of real tables have the mean R² on held-out rows; lines of
simulated ones the bias of coefficients that are zero, in deviations of the fit, for rare levels
and labels whose mean is at some place of their bounds.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import privasso as pv
from bench.real.cells import DELTA, Cell, split
from bench.real.split import Split
from bench.real.tables import available, load
from bench.real.task import r_squared

SPLITS, FITS = 10, 60
EPSILONS = (1.0, 3.0)
SHARES = (0.002, 0.005, 0.01, 0.02, 0.05)
PLACES, SIZES = (0.25, 0.5, 0.75), (2000, 20_000)
FILE = Path(__file__).parent.parent / "docs" / "data" / "origins.csv"
_NUMBERS = 8


def scores(data: Split) -> tuple[float, float]:
    """R² as numbers and as zeros and ones, with the same seed."""
    found = []
    for bounds in (data.column_bounds, data.declared):
        privacy = pv.RecordDP(data.epsilon, data.delta, bounds=bounds, y_bounds=data.y_bounds)
        estimator = _fitted(privacy, data.X, data.y, data.seed)
        found.append(r_squared(data.y_test, estimator.predict(data.X_test)))
    return found[0], found[1]


def real() -> Iterator[dict[str, object]]:
    """Tables that have such columns."""
    for name in available("regression"):
        table = load(name)
        if table.indicators is None or not table.indicators.any():
            continue
        for epsilon in EPSILONS:
            drawn = [split(Cell("records", name, "privasso", None, epsilon), k)
                     for k in range(SPLITS)]  # fmt: skip
            before, after = np.array([scores(one) for one in drawn]).T
            gain = after - before
            yield _line(
                name, "R²", table.X.shape, int(table.indicators.sum()), epsilon,
                before.mean(), after.mean(), gain.std(ddof=1) / np.sqrt(SPLITS),
            )  # fmt: skip


def rare(n_rows: int, place: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers with effects, rare levels with none, and labels with their mean at this place."""
    rng = np.random.default_rng(seed)
    numbers = np.clip(rng.normal(0.4, 0.18, (n_rows, _NUMBERS)), 0.0, 1.0)
    ones = rng.random((n_rows, len(SHARES))) < SHARES
    signal = (numbers - 0.4) @ (0.05 * rng.standard_normal(_NUMBERS))
    y = place + signal + 0.08 * rng.standard_normal(n_rows)
    return np.hstack([numbers, ones]), np.clip(y, 0.0, 1.0)


def simulated() -> Iterator[dict[str, object]]:
    """Biases in deviations of the fit."""
    for n_rows in SIZES:
        for epsilon in EPSILONS:
            for place in PLACES:
                ratios = []
                for last in ((0.0, 1.0), "0/1"):
                    bounds = [*[(0.0, 1.0)] * _NUMBERS, *[last] * len(SHARES)]
                    privacy = pv.RecordDP(epsilon, DELTA, bounds=bounds, y_bounds=(0.0, 1.0))
                    coef = np.array([
                        _fitted(privacy, *rare(n_rows, place, k), k).coef_[_NUMBERS:]
                        for k in range(FITS)
                    ])  # fmt: skip
                    ratios.append(coef.mean(axis=0) / coef.std(axis=0, ddof=1))
                for share, before, after in zip(SHARES, *ratios, strict=True):
                    name = f"a share of {share:.1%}, labels at {place:g}"
                    shape = n_rows, _NUMBERS + len(SHARES)
                    yield _line(
                        name, "bias", shape, len(SHARES), epsilon, before, after, FITS**-0.5
                    )


def _fitted(privacy: pv.RecordDP, X: np.ndarray, y: np.ndarray, seed: int) -> pv.PrivateLasso:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return pv.PrivateLasso(privacy=privacy, random_state=seed).fit(X, y)


def _line(
    name: str, measure: str, shape: tuple[int, ...], ones: int, epsilon: float,
    before: float, after: float, error: float,
) -> dict[str, object]:  # fmt: skip
    print(f"{name}, ε = {epsilon:g}: {measure} {before:+.3f} → {after:+.3f}", flush=True)
    return {
        "table": name,
        "measure": measure,
        "rows": shape[0],
        "columns": shape[1],
        "zeros and ones": ones,
        "epsilon": epsilon,
        "as numbers": round(float(before), 4),
        "from zero": round(float(after), 4),
        "standard error": round(float(error), 4),
    }


def main() -> None:
    """Write all lines."""
    lines = [*real(), *simulated()]
    FILE.parent.mkdir(exist_ok=True)
    pl.DataFrame(lines).write_csv(FILE)


if __name__ == "__main__":
    main()
