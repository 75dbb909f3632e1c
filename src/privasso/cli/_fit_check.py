"""Options of `privasso fit` that contradict or need one another, before anything is read."""

from __future__ import annotations

from privasso._text import escaped
from privasso._validation import positive_float
from privasso.cli._fit_privacy import privacy_from
from privasso.cli._fit_settings import FitSettings
from privasso.fit import Plan
from privasso.privacy import Privacy

#: Options that were decided when a kept release was made.
DECIDED = (
    "target", "features", "exclude", "categorical", "reference", "keep", "missing", "label_dp",
    "record_dp", "on_average", "epsilon", "delta", "y_bounds", "bounds", "private_scales", "shape",
    "share", "screen", "intervals", "mechanism", "neighbours", "kappa", "t", "sigma", "scales",
    "noise", "design", "loss", "no_intercept", "keep_release", "ledger", "seed", "dry_run",
    "no_target_column",
)  # fmt: skip
#: Why a fit leaves nothing that models at other λ could be solved from.
_ON_AVERAGE = (
    "--label-dp: under --on-average only the coefficients at one λ are published, and nothing else "
    "of the fit is kept"
)
_SCREENED = (
    "a release that other models are solved from, and a fit of chosen columns leaves none; leave "
    "it or --screen out"
)
_OBJECTIVE = (
    "--mechanism statistics under --record-dp: a perturbed objective publishes the coefficients at "
    "one λ and nothing that another could be solved from"
)


def check(settings: FitSettings) -> None:
    """Refuse options that contradict or need one another."""
    _check_storage(settings)
    kinds = settings.given("label_dp", "record_dp", "on_average", "from_release")
    if kinds is None and settings.target is None:
        raise ValueError(
            "a fit needs a column to predict and what is to be protected; try privasso fit "
            f"{escaped(settings.source)} --target COLUMN --label-dp --epsilon 1 --delta 1e-6 "
            "--y-bounds LOW HIGH --dry-run"
        )
    if settings.out is None and not settings.dry_run:
        raise ValueError("--out MODEL.json says where the model goes; it is missing")
    settings.lam_value()
    settings.lams()
    if settings.time_limit is not None:
        positive_float("--time-limit", settings.time_limit)
    if settings.lam_path is not None and settings.path_out is None and settings.report is None:
        raise ValueError("--lam-path needs --path-out or --report to show the path in")
    if settings.from_release is not None:
        decided = settings.given(*DECIDED)
        if decided is not None:
            raise ValueError(
                f"{decided} cannot be given with --from-release, because the release was made with "
                "a value of its own; leave it out"
            )
        return
    if settings.no_target_column and not settings.dry_run:
        raise ValueError(
            "--no-target-column belongs to --dry-run: a fit needs the column of labels"
        )
    settings.missing_rule()
    if settings.references and settings.record_dp and settings.bounds in (None, "private"):
        raise ValueError("--reference needs --bounds FILE with the levels of the column")
    settings.screened()
    _check_privacy(settings, privacy_from(settings))
    settings.named_loss()
    _ = settings.targets
    settings.named_noise()
    settings.rng()


def check_plan(settings: FitSettings, plan: Plan) -> None:
    """Refuse what needs a release to solve from, where the size of the table decided on none."""
    if plan.outlook is not None and not settings.record_dp:
        _check_reuse(settings, _SCREENED)
    elif not plan.solves_again and not settings.on_average:
        _check_reuse(settings, _OBJECTIVE)


def _check_privacy(settings: FitSettings, privacy: Privacy) -> None:
    """Refuse what the kind of privacy does not have."""
    if settings.binary:
        privacy = privacy.for_classes()
        if settings.screen not in (None, "all") and settings.label_dp:
            raise ValueError("--screen is for linear models; leave --binary or --screen out")
    if settings.record_dp and settings.mechanism not in ("statistics", "auto"):
        _check_reuse(settings, _OBJECTIVE)
    if settings.binary and settings.intervals in ("least-squares", "huber"):
        raise ValueError("with --binary intervals are about odds ratios; give --intervals alone")
    if settings.on_average:
        if settings.lam_value() is None and not settings.dry_run:
            raise ValueError(
                "--on-average needs a number for --lam: choosing it from the data would leak; "
                "--dry-run suggests one"
            )
        _check_reuse(settings, _ON_AVERAGE)
    if settings.ledger is not None and not privacy.formal:
        raise ValueError(
            "--ledger needs --label-dp or --record-dp: --on-average bounds no loss to charge"
        )


def _check_reuse(settings: FitSettings, needed: str) -> None:
    """Refuse options for models at other λ, which need what is said."""
    option = settings.given("lam_path", "path_out", "keep_release")
    if option is not None:
        raise ValueError(f"{option} needs {needed}")


def _check_storage(settings: FitSettings) -> None:
    """Refuse options that a table in blocks, or one of genotypes, does not have."""
    if settings.labels is not None and not settings.genotypes:
        raise ValueError("--labels is for genotypes, a .bed file; name a column with --target")
    if settings.genotypes and settings.in_blocks:
        raise ValueError("a .bed file is one file; leave out --engine, --memory and patterns")
    if settings.engine not in (None, "local", "dask"):
        raise ValueError(f"--engine must be local or dask, not {settings.engine!r}")
    if settings.scheduler is not None and settings.engine != "dask":
        raise ValueError("--scheduler needs --engine dask")
    if settings.in_blocks:
        _check_blocks(settings)
    if settings.data is not None and settings.data.is_dir():
        raise ValueError(
            f"{escaped(settings.data)} is a folder, not a file; all of its Parquet files are one "
            f"table with '{escaped(settings.data / '*.parquet')}', in quotes"
        )


def _check_blocks(settings: FitSettings) -> None:
    if not (settings.record_dp or settings.label_dp):
        raise ValueError("tables in blocks (--engine, --memory) need --record-dp or --label-dp")
    option, why = None, " for --label-dp"
    if settings.label_dp:
        option = settings.given("report", "dry_run", "scales", "categorical", "reference")
    if option is None:
        option, why = settings.given("binary", "from_release", "row_names"), ""
    if option is not None:
        raise ValueError(
            f"{option} needs the whole table in memory{why}, and this one is read in blocks; leave "
            "it out"
        )
