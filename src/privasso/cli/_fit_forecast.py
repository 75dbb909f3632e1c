"""How a dry run shows a forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privasso.forecast import Forecast

#: Why there is no forecast of a logistic regression.
NOT_SIMULATED = "fits of logistic regressions are not simulated"


def print_forecast(expected: Forecast, lam: float | None, on: str = "these columns") -> None:
    """Print a table of R² and what it assumes; `lam` is λ where it is given."""
    from rich.console import Console
    from rich.table import Table

    at = "" if lam is None else f" at λ = {lam:g}"
    print(f"\nR² on new rows: {expected.fits} simulated fits on {on}{at}")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("", "median", "8 of 10 fits", "above 0"):
        table.add_column(title, justify="right" if title else "left", no_wrap=True)
    for line in expected.lines():
        table.add_row(*line)
    Console(width=120, highlight=False).print(table)
    print(
        f"{expected.in_words()} It is a forecast under these assumptions, not a promise; "
        "--assume-rho, --assume-r2 and --assume-label-sd change them."
    )
