"""`privasso design`: choose λ and the noise for a given amount of privacy, without data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privasso.cli._covariance import COVARIANCE_HELP
from privasso.cli._options import (
    Alpha,
    AsJson,
    Delta,
    Epsilon,
    Force,
    LabelDpFlag,
    NFeatures,
    Rho,
    Scales,
    SigmaXi,
    YBounds,
    check_figure_path,
    label_budget,
    model_of,
)

if TYPE_CHECKING:
    from privasso.privacy import RecordBudget

#: Columns of a correlation that is for any number of them, unless --n-features says otherwise.
_COLUMNS = 200


def design(
    max_onavekl: Annotated[
        float | None, typer.Option("--max-onavekl", help="Largest on-average KL divergence κ.")
    ] = None,
    max_advantage: Annotated[
        float | None,
        typer.Option("--max-advantage", help="Largest advantage of the best attack, on average."),
    ] = None,
    max_error: Annotated[
        float | None, typer.Option("--max-error", help="Largest prediction error E.")
    ] = None,
    label_dp: LabelDpFlag = False,
    record_dp: Annotated[
        bool, typer.Option("--record-dp", help="Protect whole records (mechanism: objective).")
    ] = False,
    mechanism: Annotated[
        str | None,
        typer.Option(
            "--mechanism",
            help="release: noise on Fᵀy. objective: noise in the objective of a fit that clips "
            "residuals. The default is release with --label-dp and objective with --record-dp.",
        ),
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    y_bounds: YBounds = None,
    lam: Annotated[
        float | None, typer.Option("--lam", help="Use this λ instead of choosing one.")
    ] = None,
    family: Annotated[
        str,
        typer.Option(
            "--family",
            help="Shape of the noise: power (∝ v^γ) or free; with --covariance power (∝ C^γ) or "
            "full.",
        ),
    ] = "power",
    alpha: Alpha = 0.5,
    rho: Rho = 0.1,
    sigma_xi: SigmaXi = 0.1,
    scales: Scales = "uniform",
    n_features: NFeatures = None,
    covariance: Annotated[str | None, typer.Option("--covariance", help=COVARIANCE_HELP)] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of the draws, with --covariance.")
    ] = None,
    scale_error: Annotated[
        float,
        typer.Option("--scale-error", help="τ: the noise follows v·exp(τZ) instead of v."),
    ] = 0.0,
    as_json: AsJson = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw least errors and noise to this file (png, pdf, svg)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write λ and the noise to this file, for `fit --design`."),
    ] = None,
    force: Force = False,
) -> None:
    """Choose λ, the level of the noise and its shape for a given amount of privacy, without data.

    Give one target: --max-onavekl, --max-advantage, --max-error, --label-dp or --record-dp.

    Example: `privasso design --scales lognormal:0,0.5 --max-onavekl 2 --out design.json`

    Correlated columns: `privasso design --covariance ar:0.8 --n-features 200 --max-onavekl 2`
    """
    from privasso.cli._covariance import with_covariance
    from privasso.cli._design_show import show
    from privasso.cli._outputs import DESIGN, PICTURE, Outputs, files_read
    from privasso.cli._progress import working
    from privasso.design import optimal_design, save_design

    check_figure_path(plot)
    targets = {
        "--max-onavekl": max_onavekl is not None,
        "--max-advantage": max_advantage is not None,
        "--max-error": max_error is not None,
        "--label-dp": label_dp,
        "--record-dp": record_dp,
    }
    given = [option for option, is_given in targets.items() if is_given]
    if len(given) != 1:
        found = f"{' and '.join(given)} were given" if given else "none was given"
        raise ValueError(
            f"say what the design must meet by exactly one of {', '.join(targets)}: {found}; try "
            "privasso design --max-onavekl 2"
        )
    where = "mechanism objective" if record_dp or mechanism == "objective" else None
    budget = None if record_dp else label_budget(label_dp, epsilon, delta, y_bounds)
    records = _record_budget(epsilon, delta, y_bounds) if record_dp else None
    model = model_of(alpha, rho, sigma_xi, scales)
    if covariance is not None:
        where = where or "--covariance"
        model = with_covariance(model, covariance, scales != "uniform")
        if n_features is None and model.covariance.n_columns is None:
            n_features = _COLUMNS
    if where is not None and (out is not None or plot is not None):
        raise ValueError(f"--out and --plot are not for {where}; use --json to keep it")
    with Outputs(reads=files_read(scales), force=force) as outputs:
        outputs.claim("--out", out, DESIGN)
        outputs.claim("--plot", plot, PICTURE)
        with working("Searching", quiet=as_json):
            best: Any = optimal_design(
                model, lam=lam, family=family, n_features=n_features, scale_error=scale_error,
                rng=seed, max_onavekl=max_onavekl, max_advantage=max_advantage,
                max_error=max_error, label_dp=budget, record_dp=records, mechanism=mechanism,
            )  # fmt: skip
            if covariance is not None:
                best.comparison()  # takes longest, and is kept
        if out is not None:
            save_design(best, out)
        show(best, budget, as_json=as_json)
        if plot is not None:
            from privasso.cli._design_plot import draw

            draw(best, budget, scale_error, plot)
        if not as_json:
            for path in (out, plot):
                if path is not None:
                    print(f"wrote {path}")


def _record_budget(
    epsilon: float | None, delta: float | None, y_bounds: tuple[float, float] | None
) -> RecordBudget:
    """The budget that the options describe, with --record-dp."""
    from privasso.privacy import RecordBudget

    if epsilon is None or delta is None:
        raise ValueError("--record-dp needs --epsilon and --delta")
    if y_bounds is not None:
        raise ValueError(
            "--y-bounds plays no part with --record-dp, where residuals are clipped; leave it out"
        )
    return RecordBudget(epsilon, delta)
