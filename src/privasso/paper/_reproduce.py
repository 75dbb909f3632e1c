"""Reproduce the paper: simulate, tabulate, draw, decide on the claims, write the page."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from privasso._validation import integer
from privasso.paper import _convergence, _growth  # noqa: F401  (they declare claims)
from privasso.paper._claim import REGISTRY, Decided
from privasso.paper._correlated import CORRELATED
from privasso.paper._error import FIG3, FIG4, SIMILAR
from privasso.paper._existence import MAP
from privasso.paper._figure import PaperFigure, Settings
from privasso.paper._leakage import LEAKAGE
from privasso.paper._noise import FIG1, FIG2
from privasso.paper._output import Drawn, Output, pictures
from privasso.paper._run import run, workers
from privasso.paper._sizes import KKT, TAIL
from privasso.paper._small import SMALL
from privasso.paper._tradeoff import FIG5

_ALL = (FIG1, FIG2, FIG3, FIG4, FIG5, SIMILAR, SMALL, MAP, KKT, LEAKAGE, TAIL, CORRELATED)
#: The figures of the paper, and seven more.
FIGURES = {figure.name: figure for figure in _ALL}
#: The claims, in the order of their letters.
CLAIMS = tuple(sorted(REGISTRY, key=lambda claim: claim.key))


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
    output = Output(Path(folder))

    begin = time.perf_counter()
    simulated = {figure.name: figure.simulated(settings) for figure in wanted}
    experiments = {table: one for some in simulated.values() for table, one in some.items()}
    results: dict[str, pl.DataFrame] = {}
    if experiments:
        results = run(experiments, store=output.folder / ".store", jobs=jobs, progress=report)
    seconds = {"simulation": time.perf_counter() - begin}

    tables: dict[str, pl.DataFrame] = {}
    drawn = []
    with workers(1) if jobs > 1 else nullcontext() as pool:
        begun = []
        for number, figure in enumerate(wanted):
            report(number, len(wanted), f"Drawing {figure.name}")
            start = time.perf_counter()
            own = {name: results[name] for name in simulated[figure.name]}
            own |= figure.predicted(settings)
            tables |= own
            output.tables(own)
            draw = partial(pictures, figure.draw, own)
            begun.append((figure, figure.caption(own), pool.submit(draw).result if pool else draw))
            seconds[figure.name] = time.perf_counter() - start
        report(len(wanted), len(wanted), "Writing the page")
        for figure, caption, draw in begun:
            made = draw()
            output.pictures(figure.name, made)
            drawn.append(Drawn(figure, made.png, caption))

    claims = [(claim, claim.decide(tables)) for claim in CLAIMS]
    output.findings(settings, drawn, claims, _command(settings, names))
    seconds["total"] = time.perf_counter() - begin
    manifest = output.manifest(settings, names, seconds)
    return Reproduction(output.folder, claims, tables, manifest)


def _command(settings: Settings, figures: list[str]) -> str:
    """Return the command line that repeats a run."""
    words = ["privasso", "reproduce"]
    words += figures if len(figures) < len(FIGURES) else []
    words += ["--quick"] if settings.name == "quick" else []
    return " ".join([*words, f"--samples {settings.samples}", f"--seed {settings.seed}"])
