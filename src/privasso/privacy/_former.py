"""Guarantees as they were written at first: a kind for each mechanism, with numbers of its own."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from privasso._documents import Fields

_STATED = ("epsilon", "delta", "n_rows", "y_low", "y_high")


def current(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the plain values of a guarantee in the present form; others are left as they are.

    Examples
    --------
    >>> numbers = {"delta": 1e-6, "epsilon": 1.0, "mu": 0.2, "n_rows": 9.0}
    >>> former = {"kind": "label-dp", "parameters": numbers, "adjacency": "up to 2 entries"}
    >>> now = current(former)
    >>> now["kind"], now["size"], now["losses"]
    ('label-dp', 2, [{'type': 'gaussian', 'mu': 0.1}])
    """
    if not isinstance(values, dict) or "adjacency" not in values:
        return values
    rest = {name: value for name, value in values.items() if name != "adjacency"}
    if values.get("kind") in ("average-case", "none"):
        return rest
    fields = Fields(values, "the guarantee")
    kind, adjacency = fields.text("kind"), fields.text("adjacency")
    given = fields.inner("parameters")
    numbers = {name: given.number(name) for name in given.names()}
    labels = "entr" in adjacency
    size = int(re.sub(r"\D", "", adjacency)[:6] or 1)
    return {
        **rest,
        "kind": "label-dp" if labels else "record-dp",
        "neighbours": "replaced" if labels else "emptied",
        # Several releases together were stated for the whole group.
        "size": 1 if kind == "composed" else size,
        "parameters": {name: x for name, x in numbers.items() if name in _STATED},
        "losses": _losses(kind, numbers, "labels" if labels else "records", size),
    }


def _losses(
    kind: str, numbers: Mapping[str, float], neighbours: str, size: int
) -> list[dict[str, Any]]:
    """What was asked, from the numbers of a kind; what is missing is refused where it is read."""
    if kind == "composed":
        budget = {"at_epsilon": numbers.get("epsilon"), "at_delta": numbers.get("delta")}
        return [{"type": "approximate", **budget}]

    def fit(c: str, t: str) -> dict[str, Any]:
        loss = "logistic" if "logistic" in kind else "huber"
        one = {"type": "objective", "c": numbers.get(c), "t": numbers.get(t)}
        return {**one, "neighbours": neighbours, "loss": loss}

    def choice(epsilon: str, count: str) -> dict[str, Any]:
        number = numbers.get(count, math.nan)
        whole = int(number) if number.is_integer() else None
        return {"type": "choice", "epsilon_each": numbers.get(epsilon), "count": whole}

    found = []
    if "choices" in numbers:
        found.append(choice("choice_epsilon", "choices"))
    for _ in range(min(int(numbers.get("further_rounds", 0.0)), 1000)):
        found += [fit("first_c", "first_t"), choice("second_epsilon", "second_choices")]
    if "c" in numbers:
        found.append({**fit("c", "t"), "shift": numbers.get("shift")})
    if numbers.get("mu", 0.0) != 0.0:
        # A Gaussian mechanism alone was stated for the whole group.
        alone = 1 if found else size
        found.append({"type": "gaussian", "mu": numbers["mu"] / alone})
    return found
