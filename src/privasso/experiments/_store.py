"""Finished units on disk, each under the hash of what it depends on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from privasso._files import write_whole
from privasso.experiments._unit import Result, Unit


class Store:
    """A folder of results, ``<kk>/<key>.json``, written whole or not at all.

    A file holds the description of its unit, the result, and the SHA-256 of the result. What
    cannot be read, or does not match, counts as not there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store, unit = Store(Path(folder)), Unit("critical", {"index": 3}, "")
    ...     before = store.load(unit)
    ...     store.save(unit, {"ratio": [1.5]})
    ...     before, store.load(unit)
    (None, {'ratio': [1.5]})
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def path(self, unit: Unit) -> Path:
        """Where the result of a unit is kept."""
        return self.folder / unit.key[:2] / f"{unit.key}.json"

    def load(self, unit: Unit) -> Result | None:
        """Return the result of a unit, or None if there is none that can be trusted."""
        try:
            content = json.loads(self.path(unit).read_text(encoding="utf-8"))
            sound = content["unit"] == json.loads(unit.description) and content[
                "sha256"
            ] == _checksum(content["result"])
            return content["result"] if sound else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def save(self, unit: Unit, result: Result) -> None:
        """Keep the result of a unit."""
        content = {
            "unit": json.loads(unit.description),
            "sha256": _checksum(result),
            "result": result,
        }
        path = self.path(unit)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(content, allow_nan=False))


def _checksum(result: Any) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True, allow_nan=False).encode()).hexdigest()
