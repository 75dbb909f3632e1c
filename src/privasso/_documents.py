"""Reading JSON files with suspicion."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any


def read_json(path: str | os.PathLike[str], *, most_bytes: int, error: type[ValueError]) -> Any:
    """Read a JSON file of bounded size without repeated names; its numbers are finite.

    Whatever is wrong with the content raises `error` with one sentence.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "twice.json"
    ...     _ = file.write_text('{"a": 1, "a": 2}')
    ...     read_json(file, most_bytes=1000, error=ValueError)
    Traceback (most recent call last):
    ...
    ValueError: the file has an object with the same name twice
    """
    target = Path(path)
    if target.stat().st_size > most_bytes:
        raise error(f"the file is larger than {most_bytes} bytes, too large for what it should be")
    refusals: list[ValueError] = []

    def refuse(sentence: str) -> ValueError:
        refusals.append(error(sentence))
        return refusals[-1]

    def constant(name: str) -> Any:
        raise refuse(f"the file holds {name}, and every number must be finite")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            raise refuse("the file has an object with the same name twice")
        return result

    try:
        text = target.read_bytes().decode("utf-8")
        return json.loads(text, parse_constant=constant, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        # Ours say more than the parser's: not JSON, not UTF-8, too deep, an endless number.
        raise (refusals or [error("the file is not valid JSON in UTF-8")])[0] from None


def finite_number(value: Any, name: str, *, error: type[ValueError]) -> float:
    """Return a number out of a JSON document; truth values are none.

    >>> finite_number(3, "lam", error=ValueError)
    3.0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise error(f"{name} must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise error(f"{name} must be finite")
    return number
