"""`privasso demo`: a private fit from data to report, and what such fits predict at each ε."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from privasso._text import aligned, escaped
from privasso.cli._options import AsJson, Force, option
from privasso.cli._progress import counting, silence

if TYPE_CHECKING:
    import polars as pl

#: Guarantee of the fit, and δ of the comparisons.
EPSILON, DELTA = 1.0, 1e-6
EPSILONS = (0.3, 1.0, 3.0, 10.0)


#: Data sets on which the methods are compared: a title, and the size of simulated data.
COMPARISONS: dict[str, tuple[str, tuple[int, int] | None]] = {
    "diabetes": ("Diabetes: 331 people, 10 columns", None),
    "simulated": ("Simulated: 20,000 rows, 100 columns of very different scales", (20_000, 100)),
}
_DATA, _BOUNDS = "diabetes-data.csv", "diabetes-bounds.csv"
#: What a demo writes, the data first.
_FILES = [
    _DATA, _BOUNDS, "diabetes-model.json", "diabetes-report.html",
    *(f"{name}{ending}" for name in COMPARISONS for ending in (".png", ".csv")),
]  # fmt: skip


def demo(
    out: Path = option("Folder for the files.", Path("demo")),
    draws: int = option("Random splits into rows for the fit and new rows.", 4),
    seed: int = option("Seed of the comparison.", 0),
    data_only: bool = option("Only write table and bounds, to follow the tutorials.", False),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Fit the diabetes data, whole records protected at ε = 1, then show R² at each ε.

    Example: `privasso demo --out demo --draws 50`

    The public table alone, as the tutorials use it: `privasso demo --data-only --out .`
    """
    from privasso._validation import generator, integer

    integer("--draws", draws, minimum=2)
    generator(seed)
    _check_folder(out, [_DATA, _BOUNDS] if data_only else _FILES, force)
    out.mkdir(parents=True, exist_ok=True)
    if data_only:
        files = [str(file) for file in _tables(out)]
        print(json.dumps({"files": files}) if as_json else f"wrote {' and '.join(files)}")
        return
    if not as_json:
        _run(out, draws, seed)
        return
    with silence():
        _run(out, draws, seed)
    print(json.dumps({"files": sorted(str(file) for file in out.iterdir() if file.is_file())}))


def _check_folder(out: Path, names: list[str], force: bool) -> None:
    """Refuse to replace files of the same names that are not of an earlier demo."""
    data = out / _DATA
    earlier = data.is_file() and data.read_bytes() == _content()[0].encode()
    there = [name for name in names if (out / name).exists()]
    if there and not earlier and not force:
        raise ValueError(
            f"{escaped(out / there[0])} exists already and is not of an earlier demo; name another "
            "folder with --out, or replace it with --force"
        )


def _run(out: Path, draws: int, seed: int) -> None:
    import polars as pl

    from privasso._files import write_whole
    from privasso.examples import comparison_figure
    from privasso.figures import save

    _fit(out)
    print(f"\nR² on new rows, median over {draws} random splits, δ = {DELTA:g}")
    for name, (title, size) in COMPARISONS.items():
        table = _compare(name, size, draws, seed)
        columns = _columns(table)
        print(f"\n{title}\n{aligned([[*columns], *zip(*columns.values(), strict=True)])}")
        save(comparison_figure(table, f"{title}; {draws} splits"), out / f"{name}.png")
        write_whole(out / f"{name}.csv", pl.DataFrame(columns).write_csv())
    print(
        "\nNoise on each label: Gaussian noise with the same (ε, δ) for labels, then an ordinary "
        "LASSO. No privacy: an ordinary LASSO, λ by cross-validation.\n"
        f"Pictures and tables: {', '.join(COMPARISONS)} (.png, .csv) in {out}"
    )


def _content() -> tuple[str, str]:
    """The diabetes data and bounds of their columns as CSV."""
    import polars as pl

    from privasso.examples import DIABETES_RANGES, diabetes_columns

    columns, progression = diabetes_columns()
    bounds = [{"name": name, "low": a, "high": b} for name, (a, b) in DIABETES_RANGES.items()]
    table = pl.DataFrame({**columns, "progression": progression})
    return table.write_csv(), pl.DataFrame(bounds).write_csv()


def _tables(out: Path) -> tuple[Path, Path]:
    """Write the diabetes data, which are public, and the bounds, and return the files."""
    from privasso._files import write_whole

    files = out / _DATA, out / _BOUNDS
    for file, text in zip(files, _content(), strict=True):
        write_whole(file, text)
    return files


def _fit(out: Path) -> None:
    """Do what `privasso fit` does, on a file of public data."""
    from privasso.cli._fit import FitSettings
    from privasso.cli._fit_run import run
    from privasso.cli._fit_show import command_of

    data, bounds = _tables(out)
    settings = FitSettings(
        data=data,
        target="progression",
        record_dp=True,
        epsilon=EPSILON,
        delta=DELTA,
        y_bounds=(0.0, 350.0),
        bounds=str(bounds),
        out=out / "diabetes-model.json",
        report=out / "diabetes-report.html",
        force=True,  # they are of an earlier demo, or were asked to be replaced
    )
    print("$ " + command_of("fit", settings))
    run(settings)


def _compare(name: str, size: tuple[int, int] | None, draws: int, seed: int) -> pl.DataFrame:
    """Compare the methods on one data set."""
    import numpy as np

    from privasso import examples

    rng, finished = np.random.default_rng([seed, *name.encode()]), 0
    splits = examples.diabetes_splits(draws, rng=rng)
    if size is not None:
        splits = examples.simulated_splits(draws, *size, rng=rng)
    total = draws * ((len(examples.METHODS) - 1) * len(EPSILONS) + 1)
    with counting(f"Comparing: {name}") as show:

        def progress(done: int) -> None:
            nonlocal finished
            finished += done
            show(finished, total, f"Comparing: {name}")

        return examples.summarise(
            examples.compare_methods(splits, EPSILONS, delta=DELTA, rng=rng, progress=progress)
        )


def _columns(table: pl.DataFrame) -> dict[str, list[str]]:
    """Median R² with two digits: methods below one another, values of ε side by side."""
    from privasso.examples import METHODS

    columns: dict[str, list[str]] = {"method": [*METHODS]}
    for epsilon in EPSILONS:
        # A fit without privacy has no ε, and is the same for all.
        at = table.filter((table["epsilon"] == epsilon) | table["epsilon"].is_null())
        found = dict(zip(at["method"], at["r2"], strict=True))
        columns[f"ε = {epsilon:g}"] = [f"{found[method]:z.2f}" for method in METHODS]
    return columns
