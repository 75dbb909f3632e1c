"""`privasso demo`: the whole idea on one screen and in one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

LAM = 0.2
SHOWN = 0.1  # the noise level of the table


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the picture.")] = Path("demo"),
    n_features: Annotated[int, typer.Option("--n-features", help="Columns of the data.")] = 1000,
    samples: Annotated[int, typer.Option("--samples", help="Data sets a point.")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all draws.")] = 0,
) -> None:
    """Solve private LASSOs on badly scaled data, beside what theory predicts for them.

    Example: `privasso demo --out demo --samples 20`
    """
    from rich.console import Console

    from privasso._validation import integer

    integer("--n-features", n_features, minimum=20)
    integer("--samples", samples, minimum=2)
    out.mkdir(parents=True, exist_ok=True)
    console = Console(highlight=False)
    table = _measure(n_features, samples, seed, console)
    _print(table, n_features, samples, console)
    _print_unbounded(n_features, seed, console)
    path = out / "error-against-noise.png"
    _draw(table, n_features, path)
    console.print(f"\nPicture: {path}")


def _measure(n_features: int, samples: int, seed: int, console: Any) -> pl.DataFrame:
    """Certified solves on a grid of noise levels, and the prediction for each."""
    import numpy as np
    import polars as pl
    from rich.progress import track

    import privasso as pv

    sigmas = np.sort(np.append(np.geomspace(0.01, 0.4, 11), SHOWN))
    jobs = [
        (name, law, design)
        for name, law in (("uniform (0, 1]", pv.Uniform()), ("lognormal", pv.LogNormal()))
        for design in (pv.Isotropic(1.0), pv.Gram(1.0))
    ]
    rows = []
    for name, law, design in track(
        jobs, "Solving", console=console, transient=True, disable=not console.is_terminal
    ):
        model = pv.Model(scales=law)
        predicted = pv.tradeoff(model, LAM, design, sigmas, n_features=n_features)
        error = np.full((samples, sigmas.size), np.nan)
        kkt = 0.0
        for k, rng in enumerate(np.random.default_rng(seed).spawn(samples)):
            s = model.sample(n_features, rng=rng)
            etas = design.draw(s.v, rng=rng)[:, None] * sigmas
            many = pv.solve_many(s.F, s.y, LAM, etas, throw=False)
            found = many.status == pv.Status.CONVERGED
            kkt = max(kkt, many.kkt[found].max(initial=0.0))
            miss = many.x[:, found] - s.x0[:, None]
            error[k, found] = (s.v @ miss**2) / n_features + model.sigma_xi**2
        exist = np.isfinite(error)
        with np.errstate(invalid="ignore"):
            mean = np.where(exist.any(axis=0), np.nansum(error, axis=0) / exist.sum(axis=0), np.nan)
        spread = np.array([np.std(column[~np.isnan(column)]) for column in error.T])
        rows.append(
            predicted.select(
                pl.lit(name).alias("scales"),
                pl.lit(type(design).__name__).alias("design"),
                "sigma",
                pl.col("E").alias("predicted"),
                "status",
                "onavekl",
                pl.Series("measured", mean),
                pl.Series("standard_error", spread / np.sqrt(np.maximum(exist.sum(axis=0), 1))),
                pl.Series("exist", exist.mean(axis=0)),
                pl.lit(kkt).alias("largest_kkt"),
            )
        )
    return pl.concat(rows)


def _print(table: pl.DataFrame, n_features: int, samples: int, console: Any) -> None:
    import polars as pl
    from rich.table import Table

    at = table.filter((pl.col("sigma") - SHOWN).abs() < 1e-12)
    shown = Table(
        title=f"½‖y−Fx‖² + λ‖x‖₁ + ηᵀx at λ = {LAM}, noise level {SHOWN}, "
        f"{n_features} columns, half as many rows, {samples} data sets",
        title_justify="left",
    )
    for column in ("column scales", "noise", "minimiser exists", "error", "predicted", "OnAveKL"):
        shown.add_column(column, justify="right" if column not in ("column scales",) else "left")
    for row in at.iter_rows(named=True):
        measured = f"{row['measured']:.4f} ± {row['standard_error']:.4f}"
        shown.add_row(
            row["scales"],
            row["design"],
            f"{row['exist']:.0%}",
            measured if row["exist"] else "—",
            f"{row['predicted']:.4f}" if row["status"] == "stable" else row["status"],
            f"{row['onavekl']:.2f}" if row["status"] == "stable" else "—",
        )
    console.print(shown)
    console.print(
        f"Every solve is certified: the largest KKT violation is {table['largest_kkt'].max():.0e} "
        "of λ. OnAveKL is an average under the model, not an ε."
    )


def _print_unbounded(n_features: int, seed: int, console: Any) -> None:
    import privasso as pv

    s = pv.Model().sample(n_features, rng=seed)
    eta = pv.Isotropic(1.0).draw(s.v, rng=seed)
    solution = pv.solve(s.F, s.y, LAM, eta, throw=False)
    console.print("\nWith ten times the noise, spread evenly:", style="bold")
    console.print(solution.message)


def _draw(table: pl.DataFrame, n_features: int, path: Path) -> None:
    import polars as pl
    from matplotlib.figure import Figure

    from privasso.cli._style import BLUE, ORANGE, plain_ticks, save

    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, scales in zip(panels, table["scales"].unique(maintain_order=True), strict=True):
        for design, colour in (("Isotropic", ORANGE), ("Gram", BLUE)):
            part = table.filter((pl.col("scales") == scales) & (pl.col("design") == design))
            line = part.filter(pl.col("status") == "stable")
            axes.plot(line["sigma"], line["predicted"], color=colour, linewidth=1.4)
            solved = part.filter(pl.col("exist") == 1.0)
            axes.errorbar(
                solved["sigma"], solved["measured"], solved["standard_error"],
                fmt="o", color=colour, markersize=4.5, linewidth=1.0, capsize=2,
            )  # fmt: skip
            gone = part.filter(pl.col("exist") < 1.0)
            if line.height:
                x, y = line["sigma"][-1], line["predicted"][-1]
                axes.annotate(
                    {"Isotropic": "isotropic", "Gram": "Gram-based"}[design],
                    (x, y), xytext=(6, 0), textcoords="offset points",
                    color=colour, va="center", fontsize=10,
                )  # fmt: skip
            if gone.height:
                edge = gone["sigma"][0]
                axes.axvline(edge, color=colour, linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(0.009, 0.9)
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(f"Column scales: {scales}", loc="left", fontsize=10)
        axes.set_xlabel("noise level σ_η")
    panels[0].set_ylabel("prediction error E")
    figure.suptitle(
        f"Private LASSO at λ = {LAM}, N = {n_features}: certified solves (points), "
        "state evolution (lines); dotted: some data sets have no minimiser from here on",
        fontsize=10,
    )
    save(figure, path)
