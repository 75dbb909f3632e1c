"""The files of a run: tables, figures, claims, the page, and a manifest of all of them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import privasso as pv
from privasso._files import write_whole
from privasso.paper._drawing import Drawn, Pictures
from privasso.paper._page import page, scope
from privasso.paper.claims import Decided, count_verdicts, markdown
from privasso.paper.figures import Settings, Tables

if TYPE_CHECKING:
    import polars as pl

#: Packages whose versions the manifest names.
PACKAGES = ("numpy", "scipy", "numba", "polars", "matplotlib")


class Output:
    """A folder that is filled step by step; the last step writes the manifest of all files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in (folder, folder / "tables", folder / "figures"):
            part.mkdir(parents=True, exist_ok=True)
        self._hashes: dict[str, str] = {}

    def tables(self, tables: Tables) -> None:
        """Write tables."""
        for name, table in tables.items():
            self._table(f"tables/{name}", table)

    def pictures(self, name: str, pictures: Pictures) -> None:
        """Write the drawing of a figure."""
        self._write(f"figures/{name}.pdf", pictures.pdf)
        self._write(f"figures/{name}.png", pictures.png)

    def findings(self, settings: Settings, drawn: list[Drawn], claims: Decided) -> None:
        """Write the claims and the page."""
        header = f"{count_verdicts(claims)} {scope(settings)}"
        self._write("claims.md", markdown(claims, header))
        self._write("claims.json", _json([claim.record(finding) for claim, finding in claims]))
        self._write("index.html", page(settings, drawn, claims).html())

    def manifest(
        self,
        settings: Settings,
        figures: list[str],
        seconds: dict[str, float],
        speed: dict[str, float],
    ) -> dict[str, Any]:
        """Write and return what a reader needs to repeat the run and to check its files."""
        machine = {"system": platform.system(), "processor": platform.machine()}
        record = {
            "privasso": pv.__version__,
            "python": platform.python_version(),
            "packages": {name: version(name) for name in PACKAGES},
            "machine": machine | {"cores": os.cpu_count()},
            "settings": settings.record(),
            "figures": figures,
            "files": dict(sorted(self._hashes.items())),
            "seconds": {name: round(value, 2) for name, value in seconds.items()},
            "speed": speed,
        }
        write_whole(self.folder / "manifest.json", _json(record))
        return record

    def _table(self, name: str, table: pl.DataFrame) -> None:
        buffer = io.BytesIO()
        table.write_parquet(buffer)
        self._write(f"{name}.csv", table.write_csv())
        self._write(f"{name}.parquet", buffer.getvalue())

    def _write(self, name: str, content: str | bytes) -> None:
        write_whole(self.folder / name, content)
        self._hashes[name] = hashlib.sha256((self.folder / name).read_bytes()).hexdigest()


def _json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
