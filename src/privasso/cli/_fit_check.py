"""What `privasso fit` protects, and options that contradict or need one another.

What the library refuses anyway, in words that begin with the argument, is not refused here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from privasso._text import escaped
from privasso._types import Matrix, Passed
from privasso.cli._fit import FitSettings
from privasso.cli._options import named, option_name
from privasso.encoding import Dictionary
from privasso.fit import Plan
from privasso.privacy import LabelDP, OnAverage, Privacy, RecordDP
from privasso.tables import open_table

#: Options that were decided when a kept release was made.
DECIDED = (
    "target", "features", "exclude", "categorical", "reference", "keep", "missing", "label_dp",
    "record_dp", "on_average", "epsilon", "delta", "y_bounds", "private_y_bounds", "bounds",
    "private_scales", "shape", "share", "screen", "intervals", "mechanism", "neighbours", "kappa",
    "t", "sigma", "scales", "noise", "design", "loss", "no_intercept", "keep_release", "ledger",
    "seed", "dry_run", "no_target_column",
)  # fmt: skip
#: Options that only some kinds of privacy have, these kinds, and what holds for the others.
_KINDS = ("label_dp", "record_dp", "on_average")
_ONLY = (
    ("sigma scales", ("on_average",), "a budget sets the noise by itself"),
    ("bounds private_scales shape share", ("record_dp",), "other covariates need no bounds"),
    ("noise design", ("label_dp", "on_average"), "under --record-dp bounds shape the noise"),
    ("categorical keep missing", ("label_dp", "on_average"),
     "under --record-dp the data dictionary of --bounds says what a column is"),
    ("time_limit", ("label_dp", "on_average"),
     "under --record-dp when a fit ends would depend on the data"),
    ("epsilon delta y_bounds private_y_bounds", ("label_dp", "record_dp"),
     "--on-average has no ε"),
    ("mechanism neighbours kappa t screen intervals", ("label_dp", "record_dp"),
     "--on-average has no budget"),
)  # fmt: skip
#: The smallest ε for which a minimiser is found and certified in floating-point numbers.
_LEAST_EPSILON = 1e-5
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
    _raise(_wrong(settings))


def check_plan(settings: FitSettings, plan: Plan) -> None:
    """Refuse what needs a release to solve from, where the size of the table decided on none."""
    if plan.outlook is not None and not settings.record_dp:
        _raise(_without_release(settings, _SCREENED))
    elif not plan.solves_again and not settings.on_average:
        _raise(_without_release(settings, _OBJECTIVE))


def _raise(wrong: Iterable[str]) -> None:
    for sentence in wrong:
        raise ValueError(sentence)


def _wrong(x: FitSettings) -> Iterator[str]:
    """What contradicts, sentence by sentence; a value that is wrong by itself is an error here."""
    yield from _wrong_storage(x)
    if x.given(*_KINDS, "from_release", "target") is None:
        yield (
            "a fit needs a column to predict and what is to be protected; try privasso fit "
            f"{escaped(x.source)} --target COLUMN --label-dp --epsilon 1 --delta 1e-6 "
            "--y-bounds LOW HIGH --dry-run"
        )
    if x.out is None and not x.dry_run:
        yield "--out MODEL.json says where the model goes; it is missing"
    x.lam_value()
    x.lams()
    x.named_classes()
    if x.lam_path is not None and x.path_out is None and x.report is None:
        yield "--lam-path needs --path-out or --report to show the path in"
    if x.from_release is None:
        yield from _wrong_fit(x)
    elif decided := x.given(*DECIDED):
        yield (
            f"{decided} cannot be given with --from-release, because the release was made with a "
            "value of its own; leave it out"
        )


def _wrong_fit(x: FitSettings) -> Iterator[str]:
    """What contradicts where labels are read."""
    if x.no_target_column and not x.dry_run:
        yield "--no-target-column belongs to --dry-run: a fit needs the column of labels"
    if x.references and x.record_dp and x.bounds in (None, "private"):
        yield "--reference needs --bounds FILE with the levels of the column"
    x.screened()
    privacy = privacy_from(x)
    known = x.given("y_bounds", "classes", "binary", "lam", "assume_label_sd", "design")
    if x.private_y_bounds and known is not None:
        yield (
            f"{known} does not go with --private-y-bounds, which finds the range of the labels in "
            "them; leave one of them out"
        )
    if x.binary:
        privacy.for_classes()
        if x.intervals in ("least-squares", "huber"):
            yield "with --binary intervals are about odds ratios; give --intervals alone"
    if x.record_dp and x.mechanism not in ("statistics", "auto"):
        yield from _without_release(x, _OBJECTIVE)
    if x.on_average:
        if x.lam_value() is None and not x.dry_run:
            yield (
                "--on-average needs a number for --lam: choosing it from the data would leak; "
                "--dry-run suggests one"
            )
        yield from _without_release(x, _ON_AVERAGE)
        if x.ledger is not None:
            yield "--ledger needs --label-dp or --record-dp: --on-average bounds no loss to charge"
    x.named_loss()
    _ = x.targets
    x.named_noise()
    x.rng()


def _without_release(x: FitSettings, needed: str) -> Iterator[str]:
    """Options for models at other λ, which need what is said."""
    if option := x.given("lam_path", "path_out", "keep_release"):
        yield f"{option} needs {needed}"


def _wrong_storage(x: FitSettings) -> Iterator[str]:
    """Options that a table in blocks, or one of genotypes, does not have."""
    if x.labels is not None and not x.genotypes:
        yield "--labels is for genotypes, a .bed file; name a column with --target"
    if x.genotypes and x.in_blocks:
        yield "a .bed file is one file; leave out --engine, --memory and patterns"
    if x.engine not in (None, "local", "dask"):
        yield f"--engine must be local or dask, not {x.engine!r}"
    if x.scheduler is not None and x.engine != "dask":
        yield "--scheduler needs --engine dask"
    if x.in_blocks:
        if not (x.record_dp or x.label_dp):
            yield "tables in blocks (--engine, --memory) need --record-dp or --label-dp"
        option, why = x.given("classes", "binary", "from_release", "row_names"), ""
        wider = x.given("report", "dry_run", "scales", "categorical", "reference")
        if x.label_dp and wider is not None:
            option, why = wider, " for --label-dp"
        if option is not None:
            yield (
                f"{option} needs the whole table in memory{why}, and this one is read in blocks; "
                "leave it out"
            )
    if x.data is not None and x.data.is_dir():
        yield (
            f"{escaped(x.data)} is a folder, not a file; all of its Parquet files are one table "
            f"with '{escaped(x.data / '*.parquet')}', in quotes"
        )


def privacy_from(settings: FitSettings, dictionary: Dictionary | None = None) -> Privacy:
    """Return what to protect; options that are missing or belong to another kind are refused.

    A shape from public rows needs the `dictionary` of the columns that are used; without one it is
    left out.
    """
    kinds = [kind for kind in _KINDS if getattr(settings, kind)]
    if len(kinds) != 1:
        raise ValueError(
            "say what to protect: --label-dp for differential privacy of the labels, --record-dp "
            "for that of whole records, or --on-average for noise without a worst-case claim"
        )
    for names, having, otherwise in _ONLY:
        option = None if kinds[0] in having else settings.given(*names.split())
        belongs = " or ".join(map(option_name, having))
        if option is not None:
            raise ValueError(f"{option} belongs to {belongs}; {otherwise}")
    epsilon, delta, y_bounds = settings.epsilon, settings.delta, settings.label_bounds
    if epsilon is not None and 0.0 < epsilon < _LEAST_EPSILON:
        raise ValueError(
            f"--epsilon must be at least {_LEAST_EPSILON:g}: with less the noise is larger than "
            "any result, and whether one is found depends on the data"
        )
    if settings.on_average:
        level = settings.sigma
        if level is None and settings.saved is not None:
            level = settings.saved.noise.sigma
        if level is None:
            raise ValueError("--on-average needs --sigma, the level of the noise, or --design")
        return OnAverage(level)
    if settings.label_dp:
        if epsilon is None or delta is None or y_bounds is None:
            raise ValueError(
                "--label-dp needs --epsilon, --delta and --y-bounds LOW HIGH; choose the bounds "
                "before looking at the labels"
            )
        more = _given(settings, "mechanism", "neighbours", "kappa", "t")
        return LabelDP(epsilon, delta, y_bounds, **more)
    unbounded = settings.bounds is None and not settings.genotypes
    if epsilon is None or delta is None or y_bounds is None or unbounded:
        raise ValueError(
            "--record-dp needs --epsilon, --delta, --y-bounds LOW HIGH and --bounds FILE, a data "
            "dictionary that `privasso bounds` makes a template of, or --bounds private; choose "
            "all of them before looking at the data"
        )
    private = settings.bounds == "private" or settings.private_scales or settings.shape == "private"
    if settings.share is not None and not private:
        raise ValueError(
            "--share is for what is found in the data before the fit, and nothing is; leave it "
            "out, or ask for private bounds, scales or a private shape"
        )
    known = None if settings.dictionary is None else settings.dictionary.bounds
    given = "private" if known is None else known
    shape = settings.shape
    if shape not in (None, "private"):
        shape = None if dictionary is None else _public_rows(shape, dictionary)
    return RecordDP(
        epsilon,
        delta,
        bounds=(0.0, 2.0) if settings.bounds is None else given,  # copies of an allele
        y_bounds=y_bounds,
        scales="private" if settings.private_scales else None,
        shape=shape,
        **_given(settings, "mechanism", "neighbours", "share", "kappa", "t"),
    )


def _given(settings: FitSettings, *names: str) -> dict[str, Passed]:
    """Those of the options that were given."""
    found = {name: getattr(settings, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _public_rows(file: str, dictionary: Dictionary) -> Matrix:
    """The rows of the file of --shape, encoded as those of the fit."""
    table = open_table(file)
    with named("--shape", ValueError):
        return dictionary.matrix(table.declared(dictionary)[0])
