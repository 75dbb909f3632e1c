"""Reproduce the paper: simulate, tabulate, draw, decide on the claims, write files and the page."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import polars as pl

import privasso as pv
from privasso._files import write_whole
from privasso._validation import integer
from privasso.figures import Figure, render
from privasso.page import Page
from privasso.paper import _convergence, _growth  # noqa: F401  (they declare claims)
from privasso.paper._claim import (
    NOTATION,
    REGISTRY,
    ClaimVerdict,
    Decided,
    count_verdicts,
    markdown,
    parted,
)
from privasso.paper._correlated import CORRELATED
from privasso.paper._error import FIG3, FIG4, SIMILAR
from privasso.paper._existence import MAP
from privasso.paper._figure import ALPHA, RHO, SIGMA_XI, PaperFigure, Settings, Tables
from privasso.paper._leakage import LEAKAGE
from privasso.paper._noise import FIG1, FIG2
from privasso.paper._run import run, workers
from privasso.paper._sizes import KKT, TAIL
from privasso.paper._small import SMALL
from privasso.paper._tradeoff import FIG5

_ALL = (FIG1, FIG2, FIG3, FIG4, FIG5, SIMILAR, SMALL, MAP, KKT, LEAKAGE, TAIL, CORRELATED)
#: The figures of the paper, and seven more.
FIGURES = {figure.name: figure for figure in _ALL}
#: The claims, in the order of their letters.
CLAIMS = tuple(sorted(REGISTRY, key=lambda claim: claim.key))
#: Packages whose versions the manifest names.
PACKAGES = ("numpy", "scipy", "numba", "polars", "matplotlib")
CLASSES = {
    ClaimVerdict.CONFIRMED.value: "good",
    ClaimVerdict.PARTLY.value: "middling",
    ClaimVerdict.UNDECIDED.value: "middling",
    ClaimVerdict.CONTRADICTED.value: "bad",
}
#: A figure, its caption, and its picture as PNG.
Drawn: TypeAlias = tuple[PaperFigure, str, bytes]


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The results of a run; its files are in `folder`.

    `claims` holds each claim with the finding about it, `tables` the data behind the figures, and
    `manifest` versions, settings, files and timings.
    """

    folder: Path
    claims: Decided
    tables: dict[str, pl.DataFrame]
    manifest: dict[str, object]

    @property
    def page(self) -> Path:
        """The page to open."""
        return self.folder / "index.html"


def chosen(names: Sequence[str]) -> list[PaperFigure]:
    """Return the named figures in the order of the paper; all of them when none is named."""
    for name in names:
        if name not in FIGURES:
            raise ValueError(f"there is no figure {name!r}; choose from {', '.join(FIGURES)}")
    return [figure for name, figure in FIGURES.items() if not names or name in names]


def reproduce(
    folder: Path | str,
    figures: Sequence[str] = (),
    *,
    settings: Settings | None = None,
    jobs: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> Reproduction:
    """Compute the paper's figures and claims again, and write them to a folder.

    Simulations are stored in ``folder/.store``: after an interruption the same call continues
    where it stopped. The tables depend on the settings alone. They are identical to the byte for
    any number of jobs and after any interruption.

    Parameters
    ----------
    folder : Path or str
        Created if it does not exist.
    figures : sequence of str
        Some of fig1 … fig5, similar, small, map, kkt, leakage, tail, correlated; all when empty.
    settings : Settings, optional
        How much to compute; ``Settings.full()`` when not given.
    jobs : int
        Number of processes for the simulations; with two or more, one draws figures.
    progress : callable, optional
        Called as ``progress(done, total, description)`` after each step.

    Examples
    --------
    >>> import tempfile
    >>> from privasso.paper import Settings, reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = reproduce(folder, ["fig1"], settings=Settings.tiny())
    ...     claim, finding = found.claims[11]
    ...     claim.key, finding.verdict.value, found.page.exists()
    ('l', 'confirmed', True)
    """
    settings = settings or Settings.full()
    wanted = chosen(figures)
    names = [figure.name for figure in wanted]
    jobs = integer("jobs", jobs, minimum=1)
    report = progress or (lambda done, total, description: None)
    output = _Output(Path(folder))

    begin = time.perf_counter()
    simulated = {figure.name: figure.simulated(settings) for figure in wanted}
    experiments = {table: one for some in simulated.values() for table, one in some.items()}
    results: dict[str, pl.DataFrame] = {}
    if experiments:
        results = run(experiments, store=output.folder / ".store", jobs=jobs, progress=report)
    seconds = {"simulation": time.perf_counter() - begin}

    tables: dict[str, pl.DataFrame] = {}
    drawn: list[Drawn] = []
    with workers(1) if jobs > 1 else nullcontext() as pool:
        begun = []
        for number, figure in enumerate(wanted):
            report(number, len(wanted), f"Drawing {figure.name}")
            start = time.perf_counter()
            own = {name: results[name] for name in simulated[figure.name]}
            own |= figure.predicted(settings)
            tables |= own
            output.tables(own)
            draw = partial(_pictures, figure.draw, own)
            begun.append((figure, figure.caption(own), pool.submit(draw).result if pool else draw))
            seconds[figure.name] = time.perf_counter() - start
        report(len(wanted), len(wanted), "Writing the page")
        for figure, caption, draw in begun:
            pictures = draw()
            for kind, picture in pictures.items():
                output.write(f"figures/{figure.name}.{kind}", picture)
            drawn.append((figure, caption, pictures["png"]))

    claims = [(claim, claim.decide(tables)) for claim in CLAIMS]
    header = f"{count_verdicts(claims)} {_scope(settings)}"
    output.write("claims.md", markdown(claims, header))
    output.write("claims.json", _json([claim.record(finding) for claim, finding in claims]))
    output.write("index.html", _page(settings, drawn, claims).html())
    seconds["total"] = time.perf_counter() - begin
    manifest = output.manifest(settings, names, seconds)
    return Reproduction(output.folder, claims, tables, manifest)


def _pictures(draw: Callable[[Tables], Figure], tables: Tables) -> dict[str, bytes]:
    """Draw a figure, given its tables, in both formats."""
    drawing = draw(tables)
    pdf = render(drawing, "pdf")
    drawing.set_layout_engine("none")  # the PDF has fixed the layout; a second pass is slow
    return {"pdf": pdf, "png": render(drawing, "png")}


class _Output:
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
            self.write(f"tables/{name}.csv", table.write_csv())
            self.write(f"tables/{name}.parquet", buffer.getvalue())

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

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file."""
        write_whole(self.folder / name, content)
        self._hashes[name] = hashlib.sha256((self.folder / name).read_bytes()).hexdigest()


def _json(content: object) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _page(settings: Settings, drawn: list[Drawn], claims: Decided) -> Page:
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
    for figure, caption, picture in drawn:
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
    out.code(_command(settings, [figure.name for figure, _, _ in drawn]))
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


def _command(settings: Settings, figures: list[str]) -> str:
    """Return the command line that repeats a run."""
    words = ["privasso", "reproduce"]
    words += figures if len(figures) < len(FIGURES) else []
    words += ["--quick"] if settings.name == "quick" else []
    return " ".join([*words, f"--samples {settings.samples}", f"--seed {settings.seed}"])
