"""All numbers of what a program has written, by their place, so that runs can be compared."""

from __future__ import annotations

import json
import re
from typing import Any

_NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")


def numbers_in(text: str) -> dict[str, float]:
    """Every number of a JSON document by its path, also those inside of strings.

    Entries of a sparse vector {"index": …, "value": …} are found by their index. Other text counts
    as one string.
    """
    try:
        document = json.loads(text)
    except ValueError:
        document = text
    found: dict[str, float] = {}
    _collect(document, "", found)
    return found


def _collect(value: Any, path: str, found: dict[str, float]) -> None:
    if isinstance(value, bool | int | float):
        found[path.lstrip("/")] = _finite(value)
    elif isinstance(value, str):
        for k, number in enumerate(_NUMBER.findall(value)):
            found[f"{path}/{k}".lstrip("/")] = _finite(number)
    elif isinstance(value, list):
        for k, one in enumerate(value):
            _collect(one, f"{path}/{k}", found)
    elif isinstance(value, dict):
        if set(value) == {"index", "value"}:
            value = dict(zip(value["index"], value["value"], strict=True))
        for name, one in value.items():
            _collect(one, f"{path}/{name}", found)


def _finite(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return 1e300
