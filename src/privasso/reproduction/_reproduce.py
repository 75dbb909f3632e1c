"""The run: simulate, tabulate, draw, judge, write."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasso._files import write_whole
from privasso._validation import integer
from privasso.figures import png, save
from privasso.reproduction._claims import Claim, Finding, markdown
from privasso.reproduction._manifest import manifest, write_json
from privasso.reproduction._page import page, scope, summary
from privasso.reproduction._settings import LAMS, Settings
from privasso.reproduction._studies import chosen
from privasso.reproduction._study import Study
from privasso.reproduction._verdicts import decide

if TYPE_CHECKING:
    import polars as pl


Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What a run found; its files are in `folder`.

    Attributes
    ----------
    folder : Path
        Where index.html, claims.md, claims.json, manifest.json, tables and figures are.
    claims : list of (Claim, Finding)
        Each claim of the paper with the verdict on it.
    tables : dict of str to polars.DataFrame
        The tables behind the figures.
    manifest : dict
        Versions, settings, files and timings.
    """

    folder: Path
    claims: list[tuple[Claim, Finding]]
    tables: dict[str, pl.DataFrame]
    manifest: dict[str, Any]

    @property
    def page(self) -> Path:
        """The page to open."""
        return self.folder / "index.html"


def reproduce(
    folder: Path | str,
    figures: Sequence[str] = (),
    *,
    settings: Settings | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Reproduction:
    """Compute the paper's figures and claims again, and write them to a folder.

    Simulations are kept in ``folder/.store``: a run that is broken off goes on where it stopped.
    Tables depend on the settings alone, byte for byte, not on `jobs` nor on interruptions.

    Parameters
    ----------
    folder : Path or str
        Made if it does not exist.
    figures : sequence of str
        Names out of fig1 … fig5, map, kkt, leakage, tail; all when empty.
    settings : Settings, optional
        How much to compute; ``Settings.full()`` when not given.
    jobs : int
        Processes to simulate with.
    progress : callable, optional
        Called with (done, total, description) as the work goes on.

    Examples
    --------
    >>> import tempfile
    >>> from privasso.reproduction import Settings, reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = reproduce(folder, ["fig1"], settings=Settings.tiny())
    ...     claim, finding = found.claims[-2]
    ...     claim.key, finding.verdict.value, found.page.exists()
    ('l', 'partly', True)
    """
    settings = settings or Settings.full()
    studies = chosen(figures)
    jobs = integer("jobs", jobs, minimum=1)
    report = progress or (lambda done, total, description: None)
    folder = Path(folder)
    for part in (folder, folder / "tables", folder / "figures"):
        part.mkdir(parents=True, exist_ok=True)

    timings: dict[str, float] = {}
    begin = time.perf_counter()
    experiments = {}
    for study in studies:
        experiments |= study.experiments(settings)
    results = _simulate(experiments, folder / ".store", jobs, report)
    timings["simulation"] = time.perf_counter() - begin

    files: list[Path] = []
    tables: dict[str, pl.DataFrame] = {}
    drawn = []
    for number, study in enumerate(studies):
        report(number, len(studies), f"Drawing {study.name}")
        start = time.perf_counter()
        own = study.tables(settings, results)
        tables |= own
        for name, table in own.items():
            files += _write_table(folder / "tables" / name, table)
        stem = folder / "figures" / study.name
        image = _write_figure(stem, study.draw(own))
        files += [stem.with_suffix(".pdf"), stem.with_suffix(".png")]
        drawn.append((study, image, study.caption(own)))
        timings[study.name] = time.perf_counter() - start
    report(len(studies), len(studies), "Writing the page")

    claims = decide(tables)
    files += _write_findings(folder, settings, drawn, claims)
    names = [study.name for study in studies]
    speed = _speed(settings, jobs) if "fig3" in names else {}  # whose points it is about
    timings["total"] = time.perf_counter() - begin
    record = manifest(folder, files, settings, names, timings, speed)
    write_json(folder / "manifest.json", record)
    return Reproduction(folder, claims, tables, record)


def _simulate(
    experiments: dict[str, Any], store: Path, jobs: int, report: Progress
) -> dict[str, pl.DataFrame]:
    if not experiments:
        return {}
    from privasso.experiments import run

    return run(experiments, store=store, jobs=jobs, progress=report)


def _write_table(stem: Path, table: pl.DataFrame) -> list[Path]:
    """Write a table as CSV and as Parquet."""
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    csv, parquet = stem.with_suffix(".csv"), stem.with_suffix(".parquet")
    write_whole(csv, table.write_csv())
    write_whole(parquet, buffer.getvalue())
    return [csv, parquet]


def _write_figure(stem: Path, figure: Any) -> bytes:
    """Write a figure as PDF and PNG; return the PNG, which the page shows too."""
    save(figure, stem.with_suffix(".pdf"))
    figure.set_layout_engine("none")  # what the PDF settled holds for the PNG, at half the time
    image = png(figure)
    write_whole(stem.with_suffix(".png"), image)
    return image


def _write_findings(
    folder: Path,
    settings: Settings,
    drawn: list[tuple[Study, bytes, str]],
    claims: list[tuple[Claim, Finding]],
) -> list[Path]:
    """Write the claims and the page."""
    files = [folder / name for name in ("claims.md", "claims.json", "index.html")]
    write_whole(files[0], markdown(claims, f"{summary(claims)} {scope(settings)}"))
    write_json(files[1], [claim.record(finding) for claim, finding in claims])
    write_whole(files[2], page(settings, drawn, claims).html())
    return files


def _speed(settings: Settings, jobs: int) -> dict[str, float]:
    """Points a second of the simulations, and of a plain transcription of Algorithm 1."""
    from privasso.experiments import Points, speed

    found = speed(
        Points(
            lams=LAMS, sigmas=settings.sigmas, n_features=settings.n_features, samples=4 * jobs,
            seed=settings.seed,
        ),
        jobs=jobs,
    )  # fmt: skip
    return {
        "points_per_second": found.experiment,
        "algorithm_1_points_per_second": found.batch,
        "plain_points_per_second": found.transcription,
        "ratio": found.ratio,
        "algorithm_1_ratio": found.batch_ratio,
    }
