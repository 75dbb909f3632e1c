"""Units of work, and their results on disk under a key made of all that a result depends on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from privasso._files import write_whole

#: What a unit depends on, as JSON values.
Parameters = dict[str, Any]
#: Lists of equal length, one entry per grid point; a number that does not exist is None.
Result = dict[str, list[Any]]


@dataclass(frozen=True)
class Unit:
    """The smallest piece of an experiment that is computed and stored: usually one data set.

    Parameters
    ----------
    kind : str
        Name of the computation.
    parameters : dict
        All that the result depends on, as JSON values; a seed and an index are among them.
    label : str
        Name for progress and errors; not part of the key.

    Examples
    --------
    >>> unit = Unit("critical", {"seed": 0, "index": 3, "schema": 1}, "data set 3")
    >>> unit.key == Unit("critical", {"schema": 1, "index": 3, "seed": 0}, "").key
    True
    """

    kind: str
    parameters: Parameters
    label: str

    @cached_property
    def description(self) -> str:
        """Canonical JSON of the kind, the parameters and the version of the package."""
        from privasso import __version__

        content = {"kind": self.kind, "version": __version__, **self.parameters}
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the description, under which the result is stored."""
        return hashlib.sha256(self.description.encode()).hexdigest()


class Store:
    """A folder of results, ``<kk>/<key>.json``, where ``kk`` are the first two letters of the key.

    A file holds the description of its unit, the result, and the SHA-256 of the result. It is
    written completely or not at all. A file that cannot be read, or does not match its unit or its
    checksum, is treated as missing.

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
        """Return the file of a unit's result."""
        return self.folder / unit.key[:2] / f"{unit.key}.json"

    def load(self, unit: Unit) -> Result | None:
        """Return the result of a unit, or None if no valid one is stored."""
        try:
            content = json.loads(self.path(unit).read_text(encoding="utf-8"))
            result = content["result"]
            same_unit = content["unit"] == json.loads(unit.description)
            return result if same_unit and content["sha256"] == _checksum(result) else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def save(self, unit: Unit, result: Result) -> None:
        """Store the result of a unit."""
        content = {
            "unit": json.loads(unit.description),
            "sha256": _checksum(result),
            "result": result,
        }
        path = self.path(unit)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(content, allow_nan=False))


def _checksum(result: Result) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True, allow_nan=False).encode()).hexdigest()
