"""The record of a run: versions, settings, files and how long it took."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import privasso as pv
from privasso._files import write_whole
from privasso.reproduction._settings import Settings

PACKAGES = ("numpy", "scipy", "numba", "polars", "matplotlib")


def manifest(
    folder: Path,
    files: Iterable[Path],
    settings: Settings,
    figures: Iterable[str],
    timings: dict[str, float],
    speed: dict[str, float],
) -> dict[str, Any]:
    """Return what a reader needs to repeat the run and to check its files."""
    return {
        "privasso": pv.__version__,
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "machine": {"system": platform.system(), "processor": platform.machine()}
        | {"cores": os.cpu_count()},
        "settings": settings.record(),
        "figures": list(figures),
        "files": {
            path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(files)
        },
        "seconds": {name: round(seconds, 2) for name, seconds in timings.items()},
        "speed": speed,
    }


def write_json(path: Path, content: Any) -> None:
    """Write JSON that a person can read too."""
    write_whole(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
