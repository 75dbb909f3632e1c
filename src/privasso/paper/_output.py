"""What a run writes: tables, figures, claims, the page, and a manifest of all of them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import privasso as pv
from privasso._files import write_whole
from privasso.figures import Figure, render
from privasso.page import Page
from privasso.paper._claim import NOTATION, ClaimVerdict, Decided, count_verdicts, markdown, parted
from privasso.paper._figure import ALPHA, RHO, SIGMA_XI, PaperFigure, Settings, Tables

#: Packages whose versions the manifest names.
PACKAGES = ("numpy", "scipy", "numba", "polars", "matplotlib")
CLASSES = {
    ClaimVerdict.CONFIRMED.value: "good",
    ClaimVerdict.PARTLY.value: "middling",
    ClaimVerdict.UNDECIDED.value: "middling",
    ClaimVerdict.CONTRADICTED.value: "bad",
}


class Pictures(NamedTuple):
    """The drawing of a figure as a PDF and as a PNG image."""

    pdf: bytes
    png: bytes


class Drawn(NamedTuple):
    """A figure with its picture (PNG) and its caption."""

    figure: PaperFigure
    picture: bytes
    caption: str


def pictures(draw: Callable[[Tables], Figure], tables: Tables) -> Pictures:
    """Draw a figure, given its tables."""
    drawing = draw(tables)
    pdf = render(drawing, "pdf")
    drawing.set_layout_engine("none")  # the PDF has fixed the layout; a second pass is slow
    return Pictures(pdf, render(drawing, "png"))


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
            buffer = io.BytesIO()
            table.write_parquet(buffer)
            self._write(f"tables/{name}.csv", table.write_csv())
            self._write(f"tables/{name}.parquet", buffer.getvalue())

    def pictures(self, name: str, pictures: Pictures) -> None:
        """Write the drawing of a figure."""
        self._write(f"figures/{name}.pdf", pictures.pdf)
        self._write(f"figures/{name}.png", pictures.png)

    def findings(
        self, settings: Settings, drawn: list[Drawn], claims: Decided, command: str
    ) -> None:
        """Write the claims and the page, which says by which command it was made."""
        header = f"{count_verdicts(claims)} {_scope(settings)}"
        self._write("claims.md", markdown(claims, header))
        self._write("claims.json", _json([claim.record(finding) for claim, finding in claims]))
        self._write("index.html", _page(settings, drawn, claims, command).html())

    def manifest(
        self, settings: Settings, figures: list[str], seconds: dict[str, float]
    ) -> dict[str, object]:
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
        }
        write_whole(self.folder / "manifest.json", _json(record))
        return record

    def _write(self, name: str, content: str | bytes) -> None:
        write_whole(self.folder / name, content)
        self._hashes[name] = hashlib.sha256((self.folder / name).read_bytes()).hexdigest()


def _json(content: object) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _page(settings: Settings, drawn: list[Drawn], claims: Decided, command: str) -> Page:
    """The page: verdicts first, then each figure with its caption, then all numbers."""
    out = Page("Stabilizing private LASSO: the paper, reproduced")
    out.paragraph(
        "Every figure and claim of Tanzawa and Sakata, “Stabilizing Private LASSO under "
        "Heterogeneous Covariates via Anisotropic Objective Perturbation” (arXiv 2605.01492), "
        "computed again and tested.",
        kind="lead",
    )
    out.paragraph(count_verdicts(claims))
    out.paragraph(_scope(settings), kind="warning" if settings.name != "full" else "note")
    out.paragraph(NOTATION)
    for name, part in parted(claims).items():
        out.heading(name)
        rows = [[c.key, found.verdict.value, c.statement, c.section] for c, found in part]
        out.table(["", "verdict", "claim", "section"], rows, classes=CLASSES)
    for figure, picture, caption in drawn:
        out.heading(figure.title)
        out.image(picture, caption, description=figure.title)
    out.heading("The numbers, claim by claim")
    out.paragraph("Each verdict is computed from the tables of this run by the rule that is given.")
    for claim, finding in claims:
        out.subheading(f"{claim.key}: {finding.verdict.value}")
        out.paragraph(claim.statement)
        out.paragraph(f"Test: {claim.test}", kind="note")
        out.paragraph(f"Measured: {finding.measured}")
        for numbers in finding.tables:
            out.paragraph(f"{numbers.title}:", kind="note")
            out.table(numbers.columns, numbers.rows, numeric=numbers.numeric())
    out.heading("How to repeat this")
    out.code(command)
    out.paragraph(
        "Tables (CSV and Parquet), figures (PDF and PNG), claims.json and manifest.json are in the "
        "same folder as this page. The same seed gives the same tables, byte for byte, for any "
        "number of jobs. After an interruption the same command continues where it stopped."
    )
    return out


def _scope(settings: Settings) -> str:
    """Say what was computed, and what was made smaller than in the paper."""
    correlated = settings.data("correlated")
    text = (
        f"privasso {pv.__version__}, α = {ALPHA:g}, ρ = {RHO:g}, σ_ξ = {SIGMA_XI:g}, N = "
        f"{settings.n_features} columns, {settings.samples} data sets per point (correlated "
        f"columns: N = {correlated['n_features']}, {correlated['samples']} data sets), "
        f"seed {settings.seed}."
    )
    if settings.name == "full":
        return text
    return (
        f"A {settings.name} run: smaller data, fewer data sets and coarser grids than the full "
        "one (N = 1000, 100 data sets per point). Its verdicts are provisional. " + text
    )
