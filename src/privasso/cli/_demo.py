"""`privasso demo`: a private fit from data to report, and a comparison of methods."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from privasso._text import escaped
from privasso.cli._options import AsJson, Force, option
from privasso.cli._progress import counting, silence, working

if TYPE_CHECKING:
    import polars as pl

#: Guarantee of the fit. With 442 people and a much smaller ε, all coefficients are zero.
FIT_EPSILON, FIT_DELTA = 10.0, 1e-4


class Comparison(NamedTuple):
    """A data set on which the methods are compared, and the guarantees."""

    title: str
    epsilons: tuple[float, ...]
    delta: float
    degree: int | None
    """Of the columns of the diabetes data; None for simulated data."""
    size: tuple[int, int] = (20_000, 200)
    """Rows and columns of simulated data."""


COMPARISONS = {
    "diabetes-10": Comparison(
        "Diabetes data in their own units: 331 people, 10 columns, δ = 1e-4",
        (1.0, 3.0, 10.0, 30.0), 1e-4, degree=1,
    ),
    "diabetes-64": Comparison(
        "The same with squares and products: 331 people, 64 columns, δ = 1e-4",
        (1.0, 3.0, 10.0, 30.0), 1e-4, degree=2,
    ),
    "simulated": Comparison(
        "Simulated: 20000 rows, 200 columns of very different scales, δ = 1e-6",
        (0.1, 0.3, 1.0, 3.0), 1e-6, degree=None,
    ),
}  # fmt: skip


#: What a demo writes, the data first.
_FILES = [
    "diabetes-data.csv", "diabetes-model.json", "diabetes-report.html", "diabetes-release.json",
    *(f"{name}{ending}" for name in COMPARISONS for ending in (".png", ".csv")),
]  # fmt: skip


def demo(
    out: Path = option("Folder for the files.", Path("demo")),
    draws: int = option("Draws of the noise for each method and ε.", 10),
    seed: int = option("Seed of the comparison.", 0),
    data_only: bool = option("Only write the table, to follow the tutorials.", False),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Fit the diabetes data under label privacy, then compare methods with the same guarantee.

    Example: `privasso demo --out demo --draws 50`

    The public table alone, as the tutorials use it: `privasso demo --data-only --out .`
    """
    from privasso._validation import generator, integer

    integer("--draws", draws, minimum=2)
    generator(seed)
    _check_folder(out, ["diabetes-data.csv"] if data_only else _FILES, force)
    out.mkdir(parents=True, exist_ok=True)
    if data_only:
        table = str(_table(out))
        print(json.dumps({"files": [table]}) if as_json else f"wrote {table}")
        return
    if not as_json:
        _run(out, draws, seed)
        return
    with silence():
        _run(out, draws, seed)
    print(json.dumps({"files": sorted(str(file) for file in out.iterdir() if file.is_file())}))


def _check_folder(out: Path, names: list[str], force: bool) -> None:
    """Refuse to replace files of the same names that are not of an earlier demo."""
    data = out / _FILES[0]
    earlier = data.is_file() and data.read_bytes() == _content().encode()
    there = [name for name in names if (out / name).exists()]
    if there and not earlier and not force:
        raise ValueError(
            f"{escaped(out / there[0])} exists already and is not of an earlier demo; name another "
            "folder with --out, or replace it with --force"
        )


def _run(out: Path, draws: int, seed: int) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    # The comparison that takes longest runs in a process of its own, beside all others.
    *_, last = COMPARISONS
    with _beside(_compare, last, COMPARISONS[last], draws, seed, True) as answer:
        _fit(out, console)
        console.print(
            "\nR² on new rows at the same guarantee, median over the draws; λ chosen from the "
            "noisy statistics alone",
            style="bold",
        )
        for name, comparison in COMPARISONS.items():
            if name == last:
                with working(f"Comparing: {name}"):
                    table = answer()
            else:
                table = _compare(name, comparison, draws, seed)
            _print(table, comparison.title, console)
            _write(table, f"{comparison.title}; {draws} draws", out / f"{name}.png")
    console.print(
        "\nLabel noise: noise on every label with the same (ε, δ), then an ordinary LASSO. "
        "Standardised: the columns are first divided by their norms. This costs no privacy, "
        "because under label privacy the columns are public."
    )
    console.print(f"Pictures and tables: {', '.join(COMPARISONS)} (.png, .csv) in {out}")


def _content() -> str:
    """The diabetes data as CSV."""
    import polars as pl

    from privasso.examples import diabetes_columns

    columns, progression = diabetes_columns(degree=1)
    return pl.DataFrame({**columns, "progression": progression}).write_csv()


def _table(out: Path) -> Path:
    """Write the diabetes data, which are public, and return the file."""
    from privasso._files import write_whole

    data = out / _FILES[0]
    write_whole(data, _content())
    return data


def _fit(out: Path, console: Any) -> None:
    """Do what `privasso fit` does, on a file of public data."""
    from privasso.cli._fit_command import command_of
    from privasso.cli._fit_run import run
    from privasso.cli._fit_settings import FitSettings

    data = _table(out)
    release = out / _FILES[3]
    release.unlink(missing_ok=True)  # of an earlier demo, whose data were public too
    settings = FitSettings(
        data=data,
        target="progression",
        label_dp=True,
        epsilon=FIT_EPSILON,
        delta=FIT_DELTA,
        y_bounds=(0.0, 350.0),
        out=out / "diabetes-model.json",
        report=out / "diabetes-report.html",
        keep_release=release,
        force=True,  # they are of an earlier demo, or were asked to be replaced
    )
    console.print("$ " + command_of("fit", settings), style="bold", soft_wrap=True)
    run(settings)


@contextmanager
def _beside(function: Callable[..., Any], *arguments: Any) -> Iterator[Callable[[], Any]]:
    """Call a function in a process of its own; yield a function that waits for what it returns."""
    import multiprocessing as mp

    context = mp.get_context("spawn")
    near, far = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(far, function, arguments), daemon=True)
    process.start()
    far.close()  # else the pipe would stay open when the process dies

    def answer() -> Any:
        try:
            return near.recv()
        except EOFError:
            raise RuntimeError("the process that compared the methods died") from None

    try:
        yield answer
    finally:
        process.terminate()
        process.join()
        near.close()


def _answer(pipe: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too, and ends this process
    pipe.send(function(*arguments))


def _compare(
    name: str, comparison: Comparison, draws: int, seed: int, quiet: bool = False
) -> pl.DataFrame:
    """Compare the methods on one data set."""
    import numpy as np

    from privasso.examples import (
        METHODS,
        compare_methods,
        diabetes_splits,
        simulated_splits,
        summarise,
    )

    _, epsilons, delta, degree, size = comparison
    rng = np.random.default_rng([seed, *name.encode()])
    if degree is None:
        splits, draws_per_split = simulated_splits(*size, rng=rng), draws
    else:  # the data are small: a new split for every draw
        splits, draws_per_split = diabetes_splits(draws, degree, rng=rng), 1
    total, finished = draws * len(epsilons) * len(METHODS), 0
    with counting(f"Comparing: {name}", quiet=quiet) as show:

        def progress(done: int) -> None:
            nonlocal finished
            finished += done
            show(finished, total, f"Comparing: {name}")

        table = compare_methods(
            splits,
            epsilons,
            delta=delta,
            draws=draws_per_split,
            rng=rng,
            progress=progress,
        )
    return summarise(table)


def _print(table: pl.DataFrame, title: str, console: Any) -> None:
    """Print the median R² by method and ε."""
    import polars as pl
    from rich.table import Table

    from privasso.examples import METHODS

    part = table.filter(pl.col("rule") == "auto")
    epsilons = sorted(part["epsilon"].unique().to_list())
    shown = Table(title=title, title_justify="left", title_style="")
    shown.add_column("method")
    for epsilon in epsilons:
        shown.add_column(f"ε = {epsilon:g}", justify="right")
    for method in METHODS:
        of = part.filter(pl.col("method") == method)
        found = dict(zip(of["epsilon"].to_list(), of["r2"].to_list(), strict=True))
        one = len(found) == 1  # methods without privacy are fitted once
        values = [next(iter(found.values())) if one else found[e] for e in epsilons]
        shown.add_row(method, *(f"{value:z.2f}" for value in values))
    console.print()
    console.print(shown)


def _write(table: pl.DataFrame, title: str, picture: Path) -> None:
    """Write the table as a picture and as CSV."""
    from privasso._files import write_whole
    from privasso.examples import comparison_figure
    from privasso.figures import save

    save(comparison_figure(table, title), picture)
    write_whole(picture.with_suffix(".csv"), table.write_csv(float_precision=4))
