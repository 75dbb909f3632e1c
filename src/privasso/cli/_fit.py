"""`privasso fit`: a private model from a data file, with a statement and a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from privasso.cli._fit_settings import FitSettings
from privasso.cli._options import AsJson, Delta, Epsilon, Force, LabelDpFlag, RowNames, YBounds


def _option(name: str, help: str) -> object:
    return typer.Option(name, help=help)


def _names(name: str, help: str) -> object:
    return typer.Option(name, help=help, metavar="NAMES")


def _tuple(values: list[str] | None) -> tuple[str, ...] | None:
    return tuple(values) if values else None


def fit(
    data: Annotated[
        Path | None,
        typer.Argument(
            help="CSV, TSV, Parquet, Arrow/Feather, NPZ or PLINK .bed file; or 'FOLDER/*.parquet' "
            "in quotes.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[str | None, _option("--target", "Column of the labels.")] = None,
    features: Annotated[
        list[str] | None,
        _names("--features", "Columns to use: a,b,c. All but the target otherwise. Repeatable."),
    ] = None,
    exclude: Annotated[
        list[str] | None, _names("--exclude", "Columns to leave out: a,b,c. Repeatable.")
    ] = None,
    categorical: Annotated[
        list[str] | None,
        _names("--categorical", "Columns of numbers or dates to take as levels. Repeatable."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        _names("--keep", "Columns to use although they look like identifiers. Repeatable."),
    ] = None,
    missing: Annotated[
        str | None,
        _option("--missing", "Missing covariates: error, mean or indicator.  [default: error]"),
    ] = None,
    label_dp: LabelDpFlag = False,
    record_dp: Annotated[
        bool, _option("--record-dp", "Protect whole records, covariates and labels alike.")
    ] = False,
    binary: Annotated[
        bool,
        _option("--binary", "Logistic regression for labels 0 and 1; --y-bounds is not needed."),
    ] = False,
    epsilon: Epsilon = None,
    delta: Delta = None,
    y_bounds: YBounds = None,
    bounds: Annotated[
        str | None,
        typer.Option(
            "--bounds",
            metavar="FILE|private",
            help="With --record-dp: data dictionary with the bounds of the columns, see "
            "`privasso bounds`; or find ranges in the data with noise.",
        ),
    ] = None,
    private_scales: Annotated[
        bool,
        _option("--private-scales", "With --record-dp: find ranges, centres, scales with noise."),
    ] = False,
    shape: Annotated[
        str | None,
        typer.Option(
            "--shape",
            metavar="FILE|private",
            help="With --record-dp: noise that follows the correlations of public rows of the "
            "same columns, or of the data, found with noise.",
        ),
    ] = None,
    share: Annotated[
        float | None,
        _option("--share", "Part of the budget for what is found with noise.  [default: 0.2]"),
    ] = None,
    screen: Annotated[
        str | None,
        typer.Option(
            "--screen",
            metavar="K|auto",
            help="With --label-dp or --record-dp: choose K columns with noise, and fit these. For "
            "more columns than rows.",
        ),
    ] = None,
    mechanism: Annotated[
        str | None,
        _option(
            "--mechanism",
            "--label-dp: auto, objective, release. --record-dp: objective, statistics, auto.",
        ),
    ] = None,
    kappa: Annotated[
        float | None,
        _option("--kappa", "Largest residual that is not clipped, as a part of the label range."),
    ] = None,
    t: Annotated[
        float | None, _option("--t", "Squared length of a row over the ridge of the objective.")
    ] = None,
    on_average: Annotated[
        bool, _option("--on-average", "Noise of a given level, no worst-case claim, no ε.")
    ] = False,
    sigma: Annotated[float | None, _option("--sigma", "Noise level of --on-average.")] = None,
    scales: Annotated[
        str | None,
        _option("--scales", "With --on-average: file of prior scales, or a law such as uniform."),
    ] = None,
    noise: Annotated[
        str | None,
        _option("--noise", "auto, shaped, isotropic, gram, power:GAMMA.  [default: auto]"),
    ] = None,
    design: Annotated[
        Path | None,
        _option("--design", "Design of `privasso design --out`: shape of the noise, and λ."),
    ] = None,
    lam: Annotated[
        str | None,
        _option("--lam", "λ, M times scikit-learn's alpha, or auto.  [default: auto]"),
    ] = None,
    lam_path: Annotated[
        str | None, _option("--lam-path", "Values of λ for the path: L1,L2,… (free).")
    ] = None,
    path_out: Annotated[
        Path | None, _option("--path-out", "Coefficients along the path, csv or parquet.")
    ] = None,
    no_intercept: Annotated[bool, _option("--no-intercept", "Fit through the origin.")] = False,
    out: Annotated[Path | None, _option("--out", "Where the model goes, a JSON file.")] = None,
    report: Annotated[Path | None, _option("--report", "Where the report goes, HTML.")] = None,
    keep_release: Annotated[
        Path | None, _option("--keep-release", "Keep what left the mechanism, to solve again.")
    ] = None,
    from_release: Annotated[
        Path | None,
        _option("--from-release", "Solve from a kept release: reads no labels, costs nothing."),
    ] = None,
    ledger: Annotated[
        Path | None,
        _option("--ledger", "Budget to charge first, from `privasso ledger create`."),
    ] = None,
    time_limit: Annotated[
        float | None,
        _option(
            "--time-limit",
            "Seconds for choosing λ and solving, after the release.  [default: no limit]",
        ),
    ] = None,
    seed: Annotated[
        int | None, _option("--seed", "Fixed noise for experiments: NOT FOR RELEASE.")
    ] = None,
    dry_run: Annotated[
        bool, _option("--dry-run", "Show noise and predictions; reads no labels, spends nothing.")
    ] = False,
    no_target_column: Annotated[
        bool, _option("--no-target-column", "With --dry-run: the file holds no labels at all.")
    ] = False,
    assume_rho: Annotated[
        float, _option("--assume-rho", "For predictions: share of non-zero coefficients.")
    ] = 0.3,
    assume_r2: Annotated[
        float, _option("--assume-r2", "For predictions: share of label variance explained.")
    ] = 0.5,
    assume_label_sd: Annotated[
        float | None,
        _option("--assume-label-sd", "For predictions: deviation of the labels.  [width/6]"),
    ] = None,
    engine: Annotated[
        str | None,
        _option("--engine", "With --record-dp: read files in blocks, here (local) or on dask."),
    ] = None,
    scheduler: Annotated[
        str | None,
        _option(
            "--scheduler", "Address of a Dask scheduler, tls://….  [default: threads, no cluster]"
        ),
    ] = None,
    memory: Annotated[
        str | None, _option("--memory", "Memory that reading in blocks may take, such as 4GB.")
    ] = None,
    labels: Annotated[
        Path | None,
        _option(
            "--labels", "With a .bed file: labels by FID and IID, as in PLINK's --pheno.  [.fam]"
        ),
    ] = None,
    row_names: RowNames = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Fit a sparse linear model with privacy noise and write it as one JSON file.

    First see what the noise will do, without reading a label:

    `privasso fit patients.csv --target pressure --label-dp --epsilon 1 --delta 1e-6
    --y-bounds 60 200 --dry-run`

    Then fit, keeping the release:

    `privasso fit patients.csv --target pressure --label-dp --epsilon 1 --delta 1e-6
    --y-bounds 60 200 --out model.json --report report.html --keep-release release.json`

    To protect whole records, give bounds of the columns in a data dictionary. `privasso bounds`
    writes a template to fill in:

    `privasso fit patients.csv --target pressure --record-dp --epsilon 1 --delta 1e-6
    --y-bounds 60 200 --bounds bounds.csv --out model.json`

    Tables of many files are read in blocks of rows and need not fit in memory:

    `privasso fit 'claims/*.parquet' --target cost --record-dp --epsilon 1 --delta 1e-6
    --y-bounds 0 5000 --bounds bounds.csv --memory 4GB --out model.json`

    Genotypes of PLINK stay packed while some variants are chosen. Labels are those of the .fam
    file, or --labels FILE --target COLUMN, and bounds are 0 to 2 copies:

    `privasso fit study.bed --record-dp --epsilon 3 --delta 1e-6 --y-bounds 15 45 --screen 10
    --labels bmi.txt --target bmi --out model.json`

    For labels 0 and 1, --binary fits a logistic regression, of which `privasso predict` gives
    probabilities:

    `privasso fit patients.csv --target relapse --binary --label-dp --epsilon 1 --delta 1e-6
    --out model.json`

    Under --label-dp text columns become one 0/1 column per level, such as `region=north`. Columns
    that look like identifiers, dates and missing values are refused until an option settles what
    to do.

    Several fits of the same labels share the budget of a ledger, which each is entered in before
    its noise is drawn:

    `privasso ledger create budget.json --epsilon 3 --delta 1e-6`, then `privasso fit …
    --ledger budget.json`

    Another λ from the same release costs nothing and needs no labels:

    `privasso fit patients.csv --from-release release.json --lam 5000 --out model2.json`
    """
    settings = FitSettings(
        data, target, _tuple(features), _tuple(exclude), label_dp, on_average, epsilon, delta,
        y_bounds, sigma, scales, noise, design, no_intercept, lam, lam_path, path_out, out, report,
        keep_release, from_release, ledger, seed, dry_run, no_target_column, assume_rho, assume_r2,
        assume_label_sd, time_limit, categorical=_tuple(categorical), keep=_tuple(keep),
        missing=missing, record_dp=record_dp, bounds=bounds, private_scales=private_scales,
        shape=shape, share=share, mechanism=mechanism, kappa=kappa, t=t, binary=binary,
        screen=screen, engine=engine, scheduler=scheduler, memory=memory, labels=labels,
        row_names=row_names,
        force=force,
    )  # fmt: skip
    settings.check()
    if dry_run:
        from privasso.cli._fit_dry import dry_run as rehearse
        from privasso.cli._fit_records_dry import dry_run_records

        (dry_run_records if record_dp else rehearse)(settings, as_json)
        return
    from privasso.cli._fit_rescue import Paid
    from privasso.cli._fit_run import run
    from privasso.cli._fit_show import show

    with Paid(settings) as paid:
        show(run(paid, quiet=as_json), as_json)
        sys.stdout.flush()
