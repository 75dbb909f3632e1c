"""`privasso demo`: a private fit from beginning to end, and what the same guarantee can buy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

#: Of the fit. With 442 people a much smaller ε leaves nothing but the intercept.
FIT_EPSILON, FIT_DELTA = 10.0, 1e-4
STUDIES = {
    "diabetes-10": "Diabetes data in their own units: 331 people, 10 columns, δ = 1e-4",
    "diabetes-64": "The same with squares and products: 331 people, 64 columns, δ = 1e-4",
    "simulated": "Simulated: 20000 rows, 200 columns of very different scales, δ = 1e-6",
}
EPSILONS = {
    "diabetes-10": (1.0, 3.0, 10.0, 30.0),
    "diabetes-64": (1.0, 3.0, 10.0, 30.0),
    "simulated": (0.1, 0.3, 1.0, 3.0),
}


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the files.")] = Path("demo"),
    draws: Annotated[
        int, typer.Option("--draws", help="Draws of the noise for each method and ε.")
    ] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the comparison.")] = 0,
) -> None:
    """Fit the diabetes data under label privacy, then compare ways to spend the same guarantee.

    Example: `privasso demo --out demo --draws 50`
    """
    from rich.console import Console

    from privasso._validation import generator, integer

    integer("--draws", draws, minimum=2)
    generator(seed)
    out.mkdir(parents=True, exist_ok=True)
    console = Console(highlight=False)
    _fit(out, console)
    console.print(
        "\nR² on new rows at the same guarantee, median over the draws; λ chosen from the noisy "
        "statistics alone",
        style="bold",
    )
    for name, title in STUDIES.items():
        table = _compare(name, draws, seed, console)
        _print(table, title, console)
        _write(table, f"{title}; {draws} draws", out / f"{name}.png")
    console.print(
        "\nLabel noise: every label gets its own noise at the same (ε, δ), then an ordinary LASSO. "
        "Standardised: columns divided by their norms first, which is free, for under label "
        "privacy they are public."
    )
    console.print(f"Pictures and tables: {', '.join(STUDIES)} (.png, .csv) in {out}")


def _fit(out: Path, console: Any) -> None:
    """Go the way of `privasso fit` on a file of public data."""
    import polars as pl

    from privasso.cli._fit_run import run
    from privasso.cli._fit_settings import FitSettings
    from privasso.cli._fit_show import show
    from privasso.examples import diabetes_columns

    columns, progression = diabetes_columns(degree=1)
    data = out / "diabetes-data.csv"
    pl.DataFrame({**columns, "progression": progression}).write_csv(data)
    release = out / "diabetes-release.json"
    release.unlink(missing_ok=True)  # an earlier demo's, of public data
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
    )
    console.print("$ " + settings.command(), style="bold", soft_wrap=True)
    show(run(settings), as_json=False)


def _compare(name: str, draws: int, seed: int, console: Any) -> pl.DataFrame:
    import numpy as np
    from rich.progress import Progress

    from privasso.examples import METHODS, diabetes_splits, simulated_splits, study, summary

    epsilons = EPSILONS[name]
    rng = np.random.default_rng([seed, *name.encode()])
    diabetes = name != "simulated"
    if diabetes:
        splits = diabetes_splits(draws, 1 if name == "diabetes-10" else 2, rng=rng)
    else:
        splits = simulated_splits(rng=rng)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=draws * len(epsilons) * len(METHODS))
        table = study(
            splits,
            epsilons,
            delta=FIT_DELTA if diabetes else 1e-6,
            draws=1 if diabetes else draws,
            rng=rng,
            progress=lambda done: bar.advance(task, done),
        )
    return summary(table)


def _print(table: pl.DataFrame, title: str, console: Any) -> None:
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
        alike = len(found) == 1  # without privacy there is no ε
        values = [next(iter(found.values())) if alike else found[e] for e in epsilons]
        shown.add_row(method, *(f"{value:.2f}" for value in values))
    console.print()
    console.print(shown)


def _write(table: pl.DataFrame, title: str, picture: Path) -> None:
    from privasso._files import write_whole
    from privasso.examples import study_figure
    from privasso.figures import save

    save(study_figure(table, title), picture)
    write_whole(picture.with_suffix(".csv"), table.write_csv(float_precision=4))
