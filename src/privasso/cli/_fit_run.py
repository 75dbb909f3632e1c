"""The work of `privasso fit`: read, release, solve, write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.cli._fit_rescue import after_the_release
from privasso.cli._fit_settings import FitSettings
from privasso.cli._outputs import Outputs

if TYPE_CHECKING:
    from privasso.artefact import KeptRelease
    from privasso.estimator import Postprocess
    from privasso.operators import Covariates
    from privasso.report import FitFacts
    from privasso.tables import Table

#: The path when none is asked for: from the first coefficient down to this part of λ; far below,
#: noise is all there is to see.
_PATH_END, _PATH_POINTS = 0.1, 25
#: Relative difference of squared column norms at which covariates are not those of a release.
_SAME = 1e-6


@dataclass(frozen=True, eq=False)
class FitResult:
    """What a fit did: its facts and the files it wrote."""

    facts: FitFacts
    files: dict[str, Path]


def run(settings: FitSettings, *, quiet: bool = False) -> FitResult:
    """Fit, or solve again from a kept release, and write the files."""
    settings.check()
    outputs = Outputs()
    read = (settings.data, settings.from_release, settings.design)
    inputs = tuple(path for path in read if path is not None)
    for option, path in {
        "--path-out": settings.path_out,
        "--report": settings.report,
        "--out": settings.out,
        "--keep-release": settings.keep_release,
    }.items():
        outputs.claim(option, path, inputs=inputs)
    if settings.path_out is not None:
        from privasso.tables import check_ending

        check_ending(settings.path_out)
    if settings.from_release is not None:
        return _solve_again(settings, outputs, quiet)
    return _fit(settings, outputs, quiet)


def target_of(settings: FitSettings) -> str:
    """The column of labels, which an NPZ file has a fixed name for."""
    if settings.target is not None:
        return settings.target
    if settings.data.suffix.lower() == ".npz":
        return "y"
    raise ValueError("--target COLUMN says which column holds the labels; it is missing")


def features_of(settings: FitSettings, table: Table, target: str) -> list[str]:
    """The columns that --features and --exclude leave."""
    from privasso.tables import feature_names

    return feature_names(
        table,
        target,
        features=settings.names(settings.features),
        exclude=settings.names(settings.exclude),
    )


def covariates(X: np.ndarray, names: list[str], settings: FitSettings) -> Covariates:
    """Refuse covariates without any data in them."""
    from privasso.operators import Covariates

    rows = Covariates(X, centre=not settings.no_intercept)
    if not rows.live.any():
        raise ValueError(
            f"every feature is constant ({names[0]!r} for one), so there is nothing to fit"
        )
    return rows


def prior_scales(settings: FitSettings, names: list[str]) -> Any:
    """What --scales stands for: nothing, a law, or one scale a column from a file."""
    if settings.scales is None or settings.scales == "data":
        return None
    if not Path(settings.scales).is_file():
        from privasso.cli._parsing import scale_law

        return scale_law(settings.scales)
    from privasso.cli._scales_file import scales_from_file

    return scales_from_file(Path(settings.scales), names)


def _fit(settings: FitSettings, outputs: Outputs, quiet: bool) -> FitResult:
    from privasso import __version__
    from privasso._validation import generator
    from privasso.artefact import KeptRelease, design_record, kept_text
    from privasso.estimator import Postprocess, automatic_lambda, released, statement
    from privasso.mechanism import LabelDP
    from privasso.tables import open_table

    privacy, design, lam = settings.privacy(), settings.shape(), settings.lam_value()
    if settings.keep_release is not None and settings.keep_release.exists():
        raise ValueError(
            f"--keep-release {settings.keep_release} exists already, and a release that has been "
            "paid for is not overwritten; name another file"
        )
    with _status("Reading", quiet):
        table, target = open_table(settings.data), target_of(settings)
        table.require([target])
        names = features_of(settings, table, target)
        scales = prior_scales(settings, names)
        both = table.matrix([*names, target])
        rows = covariates(both[:, :-1], names, settings)
    with _status("Releasing", quiet):
        release, design = released(
            rows, both[:, -1], privacy, design, scales=scales, rng=generator(settings.seed)
        )
    both[:, -1] = 0.0  # the labels end here; their column shares memory with the covariates
    guarantee = statement(
        privacy,
        design,
        scales=scales,
        fit_intercept=rows.centred,
        from_os_entropy=settings.seed is None,
    )
    kept = KeptRelease(
        release=release,
        column_squares=rows.squares,
        guarantee=guarantee,
        design=design_record(design),
        feature_names=tuple(names),
        target=target,
        software=__version__,
    )
    try:
        if settings.keep_release is not None:
            outputs.write({"--keep-release": kept_text(kept)})
        with _status("Solving", quiet):
            post = Postprocess(release, rows)
            if lam is None:
                assert isinstance(privacy, LabelDP)
                lam = automatic_lambda(post, privacy.width)
            return _finish(settings, outputs, kept, post, lam, privacy)
    except BaseException as error:
        raise after_the_release(error, settings, kept) from error


def _solve_again(settings: FitSettings, outputs: Outputs, quiet: bool) -> FitResult:
    from privasso.artefact import load_kept
    from privasso.estimator import Postprocess, automatic_lambda
    from privasso.mechanism import LabelDP
    from privasso.operators import Covariates
    from privasso.tables import open_table

    assert settings.from_release is not None
    kept = load_kept(settings.from_release)
    with _status("Reading", quiet):
        X = open_table(settings.data).matrix(kept.feature_names)
        rows = Covariates(X, centre=kept.release.fit_intercept)
    _check_same(rows, kept, settings)
    stated = kept.guarantee
    privacy = LabelDP(stated["epsilon"], stated["delta"], (stated["y_low"], stated["y_high"]))
    with _status("Solving", quiet):
        post = Postprocess(kept.release, rows)
        lam = settings.lam_value()
        if lam is None:
            lam = automatic_lambda(post, kept.width)
        return _finish(settings, outputs, kept, post, lam, privacy)


def _check_same(rows: Covariates, kept: KeptRelease, settings: FitSettings) -> None:
    if rows.shape[0] != kept.release.n_rows:
        raise ValueError(
            f"{settings.data} has {rows.shape[0]} rows and the release was made from "
            f"{kept.release.n_rows}; pass the covariates of the fit"
        )
    off = np.abs(rows.squares - kept.column_squares) > _SAME * kept.column_squares
    if off.any():
        name = kept.feature_names[int(np.argmax(off))]
        raise ValueError(
            f"{settings.data} is not the data that the release was made from: column {name!r} "
            "has other values"
        )


def _finish(
    settings: FitSettings,
    outputs: Outputs,
    kept: KeptRelease,
    post: Postprocess,
    lam: float,
    privacy: Any,
) -> FitResult:
    """Everything after the release: a function of it and of the covariates."""
    from privasso.artefact import ReleasedModel, model_text
    from privasso.cli._fit_facts import facts_of
    from privasso.tables import table_bytes

    coef, intercept = post.solve(lam)
    model = ReleasedModel(
        coef=coef,
        intercept=intercept,
        lam=lam,
        guarantee=kept.guarantee,
        design=kept.design,
        feature_names=kept.feature_names,
        software=kept.software,
    )
    path = None
    if kept.guarantee.kind == "label-dp" and (settings.path_out or settings.report):
        lams = settings.lams()
        if lams is None:
            largest = max(float(np.max(np.abs(post.b), initial=0.0)), lam)
            lams = list(np.geomspace(largest, _PATH_END * lam, _PATH_POINTS))
        path = post.path(np.array(lams))
    facts = facts_of(settings, kept, post, model, path, privacy)
    contents: dict[str, str | bytes] = {}
    if settings.path_out is not None and path is not None:
        columns = {
            "lam": path.lams,
            "status": [str(status.value) for status in path.status],
            "intercept": path.intercept,
            **{f"coef:{name}": path.coef[k] for k, name in enumerate(kept.feature_names)},
        }
        contents["--path-out"] = table_bytes(columns, settings.path_out)
    if settings.report is not None:
        from privasso.report import fit_page

        contents["--report"] = fit_page(facts).html()
    contents["--out"] = model_text(model)
    outputs.write(contents)
    files = {option: outputs.paths[option] for option in contents}
    if settings.keep_release is not None:
        files["--keep-release"] = settings.keep_release
    return FitResult(facts, files)


@contextlib.contextmanager
def _status(what: str, quiet: bool) -> Iterator[None]:
    """Show what is going on while it takes, if somebody is looking."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield
        return
    with console.status(what):
        yield
