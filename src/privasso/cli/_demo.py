"""`privasso demo`: the whole idea on one screen and in one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

LAM = 0.2
SHOWN = 0.1  # the noise level of the table
LEVELS = (0.01, 0.02, 0.035, 0.05, 0.075, SHOWN, 0.13, 0.17, 0.22)


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
    console.print(f"\nPicture: {path}", soft_wrap=True)


def _measure(n_features: int, samples: int, seed: int, console: Any) -> pl.DataFrame:
    """Certified solves on a grid of noise levels; one row a solve."""
    import numpy as np
    import polars as pl
    from rich.progress import track

    import privasso as pv

    sigmas = np.array(LEVELS)
    jobs = [
        (scales, law, design, k)
        for scales, law in _laws().items()
        for design in (pv.Isotropic(1.0), pv.Gram(1.0))
        for k in range(samples)
    ]
    rows = []
    for scales, law, design, k in track(
        jobs, "Solving", console=console, transient=True, disable=not console.is_terminal
    ):
        model = pv.Model(scales=law)
        rng = np.random.default_rng([seed, k])
        s = model.sample(n_features, rng=rng)
        etas = design.draw(s.v, rng=rng)[:, None] * sigmas
        many = pv.solve_many(s.F, s.y, LAM, etas, throw=False)
        miss = many.x - s.x0[:, None]
        rows.append(
            pl.DataFrame(
                {
                    "scales": scales,
                    "design": type(design).__name__,
                    "sigma": sigmas,
                    "exists": many.status == pv.Status.CONVERGED,
                    "E": (s.v @ miss**2) / n_features + model.sigma_xi**2,
                    "kkt": many.kkt,
                }
            )
        )
    return pl.concat(rows)


def _laws() -> dict[str, Any]:
    import privasso as pv

    return {"uniform": pv.Uniform(), "lognormal": pv.LogNormal()}


def _summary(table: pl.DataFrame) -> pl.DataFrame:
    """Mean and standard error over the data sets that have a minimiser, and their share."""
    import polars as pl

    found = pl.col("E").filter(pl.col("exists"))
    return table.group_by("scales", "design", "sigma", maintain_order=True).agg(
        pl.col("exists").mean(),
        found.mean().alias("E"),
        (found.std() / found.len().sqrt()).alias("standard_error"),
    )


def _print(table: pl.DataFrame, n_features: int, samples: int, console: Any) -> None:
    import polars as pl
    from rich.table import Table

    import privasso as pv

    shown = Table(
        title=f"λ = {LAM}, σ_η = {SHOWN}, {n_features} columns, {samples} data sets",
        title_justify="left",
    )
    for column in ("scales", "noise", "minimiser", "error E", "predicted", "OnAveKL"):
        shown.add_column(column, justify="left" if column in ("scales", "noise") else "right")
    for row in _summary(table.filter(pl.col("sigma") == SHOWN)).iter_rows(named=True):
        model = pv.Model(scales=_laws()[row["scales"]])
        design = {"Isotropic": pv.Isotropic, "Gram": pv.Gram}[row["design"]](SHOWN)
        fp = pv.state_evolution(model, LAM, design, n_features=n_features)
        stable = fp.status is pv.FixedPointStatus.STABLE
        shown.add_row(
            row["scales"],
            row["design"],
            f"in {row['exists']:.0%}",
            "—" if row["E"] is None else f"{row['E']:.3f} ± {row['standard_error'] or 0:.3f}",
            f"{fp.E:.3f}" if stable else fp.status.value,
            f"{fp.onavekl():.2f}" if stable else "—",
        )
    console.print(shown)
    worst = table.filter(pl.col("exists"))["kkt"].max()
    console.print(
        f"{table.height} solves, each certified: a minimiser with KKT violation at most "
        f"{worst:.0e} of λ, or a ray that proves that there is none.\n"
        "OnAveKL is an average under the model: no bound for any one person, not an ε."
    )


def _print_unbounded(n_features: int, seed: int, console: Any) -> None:
    import privasso as pv

    s = pv.Model().sample(n_features, rng=seed)
    eta = pv.Isotropic(1.0).draw(s.v, rng=seed)
    solution = pv.solve(s.F, s.y, LAM, eta, throw=False)
    console.print("\nWith ten times the noise, spread evenly:", style="bold")
    console.print(solution.message)


def _draw(table: pl.DataFrame, n_features: int, path: Path) -> None:
    import numpy as np
    import polars as pl
    from matplotlib.figure import Figure

    import privasso as pv
    from privasso.figures import BLUE, ORANGE, plain_ticks, save

    figure = Figure(figsize=(10.0, 4.4), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    summary = _summary(table)
    grid = np.geomspace(min(LEVELS), max(LEVELS), 120)
    looks = (
        (pv.Isotropic(1.0), "isotropic ", ORANGE, "s", "right"),
        (pv.Gram(1.0), " Gram-based", BLUE, "o", "left"),
    )
    for axes, (scales, law) in zip(panels, _laws().items(), strict=True):
        for design, name, colour, marker, side in looks:
            theory = pv.tradeoff(pv.Model(scales=law), LAM, design, grid, n_features=n_features)
            theory = theory.filter(pl.col("status") == "stable")
            axes.plot(theory["sigma"], theory["E"], color=colour, linewidth=1.4)
            part = summary.filter(
                (pl.col("scales") == scales) & (pl.col("design") == type(design).__name__)
            )
            solved = part.filter(pl.col("exists") == 1.0)
            axes.errorbar(
                solved["sigma"], solved["E"], solved["standard_error"], fmt=marker,
                color=colour, markersize=5, markerfacecolor="white", linewidth=1.0, capsize=2,
            )  # fmt: skip
            gone = part.filter(pl.col("exists") < 1.0)
            if gone.height:
                axes.axvline(gone["sigma"][0], color=colour, linewidth=1.0, linestyle=":")
            below = theory.filter(pl.col("E") < 0.6)
            if below.height:
                axes.text(below["sigma"][-1], below["E"][-1], name, color=colour, ha=side)
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
        axes.set_ylim(0.018, 1.2)
        axes.set_xlim(0.009, 0.5)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(f"Column scales: {law!r}", loc="left", fontsize=10)
        axes.set_xlabel("noise level σ_η")
    panels[0].set_ylabel("prediction error E")
    figure.suptitle(
        f"λ = {LAM}, N = {n_features}. Points: certified solves. Lines: state evolution. "
        "Dotted: from here on some data sets have no minimiser.",
        fontsize=10,
    )
    save(figure, path)
