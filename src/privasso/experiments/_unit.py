"""A unit of work: everything that its result depends on, and a name made of that."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

#: Lists of equal length, one entry a row; a number that does not exist is None.
Result = dict[str, list[Any]]


@dataclass(frozen=True)
class Unit:
    """One piece of an experiment, small enough to lose: usually one data set.

    Parameters
    ----------
    kind : str
        Which computation.
    parameters : dict
        All that it depends on, as JSON values; a seed and an index among them.
    label : str
        What a progress bar or an error calls it; no part of the key.

    Examples
    --------
    >>> unit = Unit("critical", {"seed": 0, "index": 3, "schema": 1}, "data set 3")
    >>> unit.key == Unit("critical", {"schema": 1, "index": 3, "seed": 0}, "").key
    True
    """

    kind: str
    parameters: dict[str, Any]
    label: str

    @cached_property
    def description(self) -> str:
        """Canonical JSON of the kind, its parameters and the version of the package."""
        from privasso import __version__

        content = {"kind": self.kind, "version": __version__, **self.parameters}
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the description, the name under which the result is stored."""
        return hashlib.sha256(self.description.encode()).hexdigest()
