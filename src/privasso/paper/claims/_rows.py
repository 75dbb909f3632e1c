"""Rows of the tables of claims: groups of points, and pairs of numbers as they are shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from privasso.paper.figures import LAWS

#: The designs that the paper compares.
DESIGNS = ("isotropic", "gram")


def groups(points: pl.DataFrame, *by: str) -> Any:
    """Groups of rows with the same law and the same values of `by`, in a fixed order."""
    ordered = points.sort("law", *by, descending=[True] + [False] * len(by))
    return ordered.group_by("law", *by, maintain_order=True)


def finite(value: float) -> float | None:
    """The number for a JSON file; None if it is infinite or does not exist."""
    return float(value) if np.isfinite(value) else None


def ratio(above: float, below: float) -> str:
    """A ratio in words."""
    return f"{above / below:.2f}" if np.isfinite(above) and np.isfinite(below) else "—"


def levels(at: tuple[str, float], pair: list[float], digits: str = "") -> dict[str, str]:
    """A row with the noise levels of the two designs and their ratio, for a law and a λ."""
    words = [f"{x:{digits}g}" if np.isfinite(x) else "none" for x in pair]
    case = {"law": LAWS[at[0]].name, "λ": f"{at[1]:g}"}
    return case | {"isotropic": words[0], "Gram-based": words[1], "ratio": ratio(*pair[::-1])}
