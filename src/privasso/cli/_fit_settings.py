"""The options of `privasso fit`: how each is written in a command, and what it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from privasso._text import escaped
from privasso._validation import generator, positive_float
from privasso.cli._options import Delta, Epsilon, Force, LabelDpFlag, RowNames, YBounds

if TYPE_CHECKING:
    import numpy as np

    from privasso.design import SavedDesign
    from privasso.encoding import Dictionary
    from privasso.fit import Classes
    from privasso.noise import NoiseDesign


def _option(name: str, help: str, metavar: str | None = None) -> object:
    return typer.Option(name, help=help, metavar=metavar)


@dataclass(frozen=True)
class FitSettings:
    """The options of `privasso fit` in the order of its help; None for those not given."""

    data: Annotated[
        Path | None,
        typer.Argument(
            help="CSV, TSV, Parquet, Arrow/Feather, NPZ or PLINK .bed file; or 'FOLDER/*.parquet' "
            "in quotes.",
            show_default=False,
        ),
    ] = None
    target: Annotated[str | None, _option("--target", "Column of the labels.")] = None
    features: Annotated[
        list[str] | None,
        _option(
            "--features",
            "Columns to use: a,b,c. All but the target otherwise. Repeatable.",
            "NAMES",
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        _option("--exclude", "Columns to leave out: a,b,c. Repeatable.", "NAMES"),
    ] = None
    categorical: Annotated[
        list[str] | None,
        _option(
            "--categorical", "Columns of numbers or dates to take as levels. Repeatable.", "NAMES"
        ),
    ] = None
    keep: Annotated[
        list[str] | None,
        _option(
            "--keep", "Columns to use although they look like identifiers. Repeatable.", "NAMES"
        ),
    ] = None
    missing: Annotated[
        str | None,
        _option("--missing", "Missing covariates: error, mean or indicator.  [default: error]"),
    ] = None
    label_dp: LabelDpFlag = False
    record_dp: Annotated[
        bool, _option("--record-dp", "Protect whole records, covariates and labels alike.")
    ] = False
    binary: Annotated[
        bool,
        _option("--binary", "Logistic regression for labels 0 and 1; --y-bounds is not needed."),
    ] = False
    epsilon: Epsilon = None
    delta: Delta = None
    y_bounds: YBounds = None
    bounds: Annotated[
        str | None,
        _option(
            "--bounds",
            "With --record-dp: data dictionary with the bounds of the columns, see `privasso "
            "bounds`; or find ranges in the data with noise.",
            "FILE|private",
        ),
    ] = None
    private_scales: Annotated[
        bool,
        _option("--private-scales", "With --record-dp: find ranges, centres, scales with noise."),
    ] = False
    shape: Annotated[
        str | None,
        _option(
            "--shape",
            "With --record-dp: noise that follows the correlations of public rows of the same "
            "columns, or of the data, found with noise.",
            "FILE|private",
        ),
    ] = None
    share: Annotated[
        float | None,
        _option("--share", "Part of the budget for what is found with noise.  [default: 0.2]"),
    ] = None
    screen: Annotated[
        str | None,
        _option(
            "--screen",
            "With --label-dp or --record-dp: choose K columns with noise, and fit these. For more "
            "columns than rows.",
            "K|auto",
        ),
    ] = None
    mechanism: Annotated[
        str | None,
        _option(
            "--mechanism",
            "--label-dp: auto, objective, release. --record-dp: objective, statistics, auto.",
        ),
    ] = None
    kappa: Annotated[
        float | None,
        _option("--kappa", "Largest residual that is not clipped, as a part of the label range."),
    ] = None
    t: Annotated[
        float | None, _option("--t", "Squared length of a row over the ridge of the objective.")
    ] = None
    on_average: Annotated[
        bool, _option("--on-average", "Noise of a given level, no worst-case claim, no ε.")
    ] = False
    sigma: Annotated[float | None, _option("--sigma", "Noise level of --on-average.")] = None
    scales: Annotated[
        str | None,
        _option("--scales", "With --on-average: file of prior scales, or a law such as uniform."),
    ] = None
    noise: Annotated[
        str | None,
        _option("--noise", "auto, shaped, isotropic, gram, power:GAMMA.  [default: auto]"),
    ] = None
    design: Annotated[
        Path | None,
        _option("--design", "Design of `privasso design --out`: shape of the noise, and λ."),
    ] = None
    lam: Annotated[
        str | None,
        _option("--lam", "λ, M times scikit-learn's alpha, or auto.  [default: auto]"),
    ] = None
    lam_path: Annotated[
        str | None, _option("--lam-path", "Values of λ for the path: L1,L2,… (free).")
    ] = None
    path_out: Annotated[
        Path | None, _option("--path-out", "Coefficients along the path, csv or parquet.")
    ] = None
    no_intercept: Annotated[bool, _option("--no-intercept", "Fit through the origin.")] = False
    out: Annotated[Path | None, _option("--out", "Where the model goes, a JSON file.")] = None
    report: Annotated[Path | None, _option("--report", "Where the report goes, HTML.")] = None
    keep_release: Annotated[
        Path | None, _option("--keep-release", "Keep what left the mechanism, to solve again.")
    ] = None
    from_release: Annotated[
        Path | None,
        _option("--from-release", "Solve from a kept release: reads no labels, costs nothing."),
    ] = None
    ledger: Annotated[
        Path | None,
        _option("--ledger", "Budget to charge first, from `privasso ledger create`."),
    ] = None
    time_limit: Annotated[
        float | None,
        _option(
            "--time-limit",
            "Seconds for choosing λ and solving, after the release.  [default: no limit]",
        ),
    ] = None
    seed: Annotated[
        int | None, _option("--seed", "Fixed noise for experiments: NOT FOR RELEASE.")
    ] = None
    dry_run: Annotated[
        bool, _option("--dry-run", "Show noise and predictions; reads no labels, spends nothing.")
    ] = False
    no_target_column: Annotated[
        bool, _option("--no-target-column", "With --dry-run: the file holds no labels at all.")
    ] = False
    assume_rho: Annotated[
        float, _option("--assume-rho", "For predictions: share of non-zero coefficients.")
    ] = 0.3
    assume_r2: Annotated[
        float, _option("--assume-r2", "For predictions: share of label variance explained.")
    ] = 0.5
    assume_label_sd: Annotated[
        float | None,
        _option("--assume-label-sd", "For predictions: deviation of the labels.  [width/6]"),
    ] = None
    engine: Annotated[
        str | None,
        _option("--engine", "With --record-dp: read files in blocks, here (local) or on dask."),
    ] = None
    scheduler: Annotated[
        str | None,
        _option(
            "--scheduler", "Address of a Dask scheduler, tls://….  [default: threads, no cluster]"
        ),
    ] = None
    memory: Annotated[
        str | None, _option("--memory", "Memory that reading in blocks may take, such as 4GB.")
    ] = None
    labels: Annotated[
        Path | None,
        _option(
            "--labels", "With a .bed file: labels by FID and IID, as in PLINK's --pheno.  [.fam]"
        ),
    ] = None
    row_names: RowNames = False
    force: Force = False

    def given(self, *names: str) -> str | None:
        """The first of these options that was given, as it is written; None if none was."""
        for name in names:
            value = getattr(self, name)
            if value is not None and value is not False and value != []:
                return option_of(name)
        return None

    def rng(self) -> np.random.Generator | None:
        """The source of repeatable noise, or None for the operating system's entropy."""
        return None if self.seed is None else generator(self.seed)

    @property
    def genotypes(self) -> bool:
        """Whether the table is a .bed file of PLINK."""
        return self.data is not None and self.data.suffix.lower() == ".bed"

    @property
    def in_blocks(self) -> bool:
        """Whether the table is read in blocks: an engine was asked for, or several files."""
        return self.given("engine", "scheduler", "memory") is not None or (
            (self.record_dp or self.label_dp)
            and self.data is not None
            and any(mark in str(self.data) for mark in "*?[")
            and not self.data.exists()
        )

    def files_read(self) -> tuple[Path, ...]:
        """All files that the fit reads."""
        from privasso.cli._outputs import files_read

        names = (self.data, self.from_release, self.design, self.ledger, self.labels, self.scales)
        named = (name for name in (self.bounds, self.shape) if name != "private")
        return files_read(*names, *named)

    @property
    def label_bounds(self) -> tuple[float, float] | None:
        """Bounds of the labels: those given, or 0 and 1 with --binary."""
        return (0.0, 1.0) if self.binary and self.y_bounds is None else self.y_bounds

    @property
    def classes(self) -> Classes | None:
        """The classes of a logistic regression; None for a linear model."""
        from privasso.fit import Classes

        return Classes() if self.binary else None

    @property
    def source(self) -> Path:
        """The file with the table; only kept statistics need none."""
        if self.data is None:
            raise ValueError("DATA, the file with the table, is missing")
        return self.data

    def named_noise(self) -> NoiseDesign | str:
        """The noise design, or "auto" or "shaped"; under --label-dp the budget sets its level."""
        from privasso.noise import noise_from_name

        if self.saved is not None:
            if self.noise is not None:
                raise ValueError("--noise and --design both say how the noise is spread; keep one")
            return self.saved.noise
        if self.noise in (None, "auto", "shaped"):
            return self.noise or "auto"
        if self.noise == "optimal":
            raise ValueError(
                "--noise optimal needs a model of the data, which is not in the file; find the "
                "design with `privasso design … --out design.json` and pass it as --design"
            )
        return noise_from_name("--noise", self.noise, 1.0)

    @cached_property
    def dictionary(self) -> Dictionary | None:
        """The content of the file of --bounds; None for private bounds, or none at all."""
        from privasso._documents import DocumentError
        from privasso.encoding import read_dictionary

        if self.bounds is None or self.bounds == "private":
            return None
        try:
            return read_dictionary(self.bounds)
        except DocumentError as error:
            raise ValueError(f"--bounds {escaped(self.bounds)}: {error}") from None

    @cached_property
    def saved(self) -> SavedDesign | None:
        """The content of the file of --design, read once, so that the whole fit uses the same."""
        from privasso._documents import DocumentError
        from privasso.design import load_design

        if self.design is None:
            return None
        try:
            return load_design(self.design)
        except DocumentError as error:
            raise ValueError(f"--design {self.design}: {error}") from None

    def lam_value(self) -> float | None:
        """λ, or None if it is to be chosen from the release."""
        if self.lam is None and self.saved is not None:
            return self.saved.lam
        return None if self.lam in (None, "auto") else _positive("--lam", self.lam)

    def lams(self) -> list[float] | None:
        """The values of --lam-path."""
        if self.lam_path is None:
            return None
        return [_positive("--lam-path", part) for part in self.lam_path.split(",")]

    def screened(self) -> int | Literal["auto"] | None:
        """How many columns to choose before the fit."""
        if self.screen is None or self.screen == "auto":
            return self.screen
        if not self.screen.isdecimal() or int(self.screen) < 1:
            raise ValueError(f"--screen must be auto or a number of columns, not {self.screen!r}")
        return int(self.screen)

    def missing_rule(self) -> str:
        """What becomes of missing covariates."""
        from privasso.encoding import MISSING_RULES

        rule = self.missing or "error"
        if rule not in MISSING_RULES:
            raise ValueError(f"--missing must be one of {', '.join(MISSING_RULES)}, not {rule!r}")
        return rule


def option_of(name: str) -> str:
    """Return the option of a field.

    >>> option_of("y_bounds")
    '--y-bounds'
    """
    return "--" + name.replace("_", "-")


def _positive(option: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{option} {text!r} is not a number") from None
    return positive_float(option, number)
