"""What correlated columns do to the claims: where the estimator exists, and what noise costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.figures import BLUE, GREEN, GREY, ORANGE, figure
from privasso.noise import column_noise_from_name
from privasso.paper.experiments import CorrelatedExperiment, Experiment, covariance_model
from privasso.paper.figures._figure import PaperFigure, Tables
from privasso.paper.figures._looks import LAW_NAMES, LAWS, finish, legend
from privasso.paper.figures._settings import ALPHA, RHO, SIGMA_XI, Settings

if TYPE_CHECKING:
    import polars as pl

#: Correlations of the columns, and what they are called.
CORRELATIONS = {
    "ar:0.5": "AR(0.5)",
    "ar:0.9": "AR(0.9)",
    "factors:3,0.5": "3 factors",
    "levels:10,0.5": "two levels",
}
#: The designs of the paper, in both readings of "the Gram matrix", and C itself.
NAMES = {"isotropic": "isotropic", "gram": "diagonal v²", "matrix:1": "C", "matrix:2": "C²"}
COLOURS = {"isotropic": ORANGE, "gram": BLUE, "matrix:1": GREY, "matrix:2": GREEN}
#: The two readings of noise in proportion to the Gram matrix.
GRAMS = ("gram", "matrix:2")
LAM, LEVELS = 0.2, (0.05, 0.1)
#: Law of the trade-off.
LAW = "lognormal"


def _experiments(settings: Settings) -> dict[str, Experiment]:
    return {
        "correlated_points": CorrelatedExperiment(
            tuple(LAWS), tuple(CORRELATIONS), ("isotropic", *GRAMS), lam=LAM, sigmas=LEVELS,
            n_features=settings.correlated_features, samples=settings.correlated_samples,
            draws=settings.correlated_draws, seed=settings.seed, alpha=ALPHA, rho=RHO,
            sigma_xi=SIGMA_XI,
        )
    }  # fmt: skip


def _tables(settings: Settings, results: Tables) -> dict[str, pl.DataFrame]:
    points = results["correlated_points"]
    return {"correlated_points": points, "correlated_tradeoff": _tradeoffs(settings, points)}


def _tradeoffs(settings: Settings, points: pl.DataFrame) -> pl.DataFrame:
    """E and the exact OnAveKL over levels of noise, up to 0.9 of the critical one."""
    import polars as pl

    from privasso import __version__
    from privasso.theory import correlated_edge, tradeoff

    parts = []
    drawn = {"draws": settings.correlated_draws, "rng": settings.seed}
    for correlation in CORRELATIONS:
        size = int(points["n_features"][0])
        case = {
            "alpha": ALPHA, "rho": RHO, "sigma_xi": SIGMA_XI, "law": LAW, "columns": correlation,
            "n_features": size, "seed": settings.seed,
        }  # fmt: skip
        model = covariance_model(case)
        for design in NAMES:
            noise = column_noise_from_name("design", design, 1.0)
            edge = correlated_edge(model, noise, **drawn).ratio
            sigmas = np.geomspace(0.01, 0.9 * LAM / edge, settings.correlated_levels)
            rows = tradeoff(model, LAM, noise, sigmas, **drawn)
            named = [
                pl.lit(value).alias(name)
                for name, value in (
                    ("law", LAW), ("columns", correlation), ("design", design),
                    ("n_features", size), ("seed", settings.seed), ("version", __version__),
                )
            ]  # fmt: skip
            parts.append(rows.with_columns(named))
    first = ["law", "columns", "design", "lam", "sigma", "n_features", "seed", "version"]
    return pl.concat(parts).select(*first, pl.exclude(first))


def _draw(tables: Tables) -> Any:
    points, curves = tables["correlated_points"], tables["correlated_tradeoff"]
    canvas = figure(9.6, 4.6)
    left, right = canvas.subplots(1, 2, width_ratios=(1.15, 1.0))
    cases = points.filter(sigma=LEVELS[0], design="isotropic")
    for place, case in enumerate(cases.iter_rows(named=True)):
        for shift, design in zip((-0.2, 0.0, 0.2), ("isotropic", *GRAMS), strict=True):
            row = points.filter(
                sigma=LEVELS[0], design=design, law=case["law"], columns=case["columns"]
            ).row(0, named=True)
            left.errorbar(
                row["ratio"], place + shift, xerr=2.0 * row["ratio_se"], fmt="o", ms=4,
                color=COLOURS[design], lw=1.0,
            )  # fmt: skip
            left.plot(row["ratio_theory"], place + shift, "x", color="black", ms=5)
    left.set_yticks(
        range(cases.height),
        [
            f"{LAW_NAMES[row['law']]}, {CORRELATIONS[row['columns']]}"
            for row in cases.iter_rows(named=True)
        ],
    )
    left.invert_yaxis()
    finish(left, y_log=False)
    left.set_xlabel("smallest λ/σ with an estimator")
    shown = "ar:0.9"
    for design, name in NAMES.items():
        line = curves.filter(columns=shown, design=design, status="stable").sort("sigma")
        right.plot(
            line["onavekl"], line["E"], "o-", ms=3, lw=1.3, color=COLOURS[design], label=name
        )
    finish(right)
    right.set_ylim(top=10.0 * float(curves.filter(columns=shown)["E"].to_numpy().min()))
    right.set_xlabel("OnAveKL of one replaced record")
    right.set_ylabel("prediction error E")
    right.set_title(f"{LAW_NAMES[LAW]}, {CORRELATIONS[shown]}", loc="left", fontsize=10)
    dot = {"ls": "none", "ms": 6, "marker": "o"}
    legend(
        canvas,
        [(name, {**dot, "color": COLOURS[design]}) for design, name in NAMES.items()]
        + [("state evolution", {"ls": "none", "ms": 6, "marker": "x", "color": "black"})],
    )
    return canvas


def _caption(tables: Tables) -> str:
    points = tables["correlated_points"]
    shares = []
    for design in GRAMS:
        factors = gain(points, design)
        shares.append(f"{NAMES[design]}: {factors.min():.1f} to {factors.max():.1f} times smaller")
    return (
        "Not in the paper, which has independent columns. Left: the smallest λ/σ_η at which an "
        "estimator exists, by linear programming ± 2 standard errors and by state evolution "
        "(crosses), for columns of covariance C; v is its diagonal. Compared with isotropic noise "
        f"it is, for {'; '.join(shares)}. Right: error against leakage, traced by the noise level, "
        f"both predicted (N = {points['n_features'][0]}, {points['samples'][0]} data sets, "
        f"λ = {LAM:g})."
    )


def gain(points: pl.DataFrame, design: str) -> np.ndarray:
    """Critical ratio of isotropic noise divided by that of a design, in each case."""
    one = points.filter(sigma=points["sigma"][0]).sort("law", "columns")
    both = (one.filter(design=name)["ratio"].to_numpy() for name in ("isotropic", design))
    isotropic, other = both
    return isotropic / other


CORRELATED = PaperFigure(
    "correlated", "Correlated columns", _experiments, _tables, _draw, _caption
)  # fmt: skip
