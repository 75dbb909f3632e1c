"""`privasso fit`: its options, how each is written in a command, and what it stands for."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from privasso._validation import generator, positive_float
from privasso.cli._options import AsJson, Force, argument, named, option, option_name

if TYPE_CHECKING:
    import numpy as np

    from privasso.design import SavedDesign
    from privasso.encoding import Dictionary
    from privasso.fit import Classes
    from privasso.noise import NoiseDesign
    from privasso.problem import Loss


#: What may follow --intervals; without any of these it stands for the first.
INTERVAL_VALUES = ("both", "least-squares", "huber")


@dataclass(frozen=True)
class FitSettings:
    """The options of `privasso fit` in the order of its help; None for those not given.

    Other commands take some of them, whose names stand in the annotation.
    """

    data: Path | None = argument(
        "CSV, TSV, Parquet, Arrow/Feather, NPZ or PLINK .bed file; or 'FOLDER/*.parquet' in "
        "quotes.",
        None,
    )
    target: str | None = option("Column of the labels.")
    features: list[str] | None = option(
        "Columns to use: a,b,c. All but the target otherwise. Repeatable.", metavar="NAMES"
    )
    exclude: list[str] | None = option("Columns to leave out: a,b,c. Repeatable.", metavar="NAMES")
    categorical: list[str] | None = option(
        "Columns of numbers or dates to take as levels. Repeatable.", metavar="NAMES"
    )
    reference: list[str] | None = option(
        "Level that the other levels of a column are compared with, such as rx=Obs. Repeatable.  "
        "[the most frequent one; with --bounds none]",
        metavar="COLUMN=LEVEL",
    )
    keep: list[str] | None = option(
        "Columns to use although they look like identifiers. Repeatable.", metavar="NAMES"
    )
    missing: str | None = option("Missing covariates: error, mean or indicator.  [default: error]")
    label_dp: bool = option("Protect the labels; the covariates are public.", False)
    record_dp: bool = option("Protect whole records, covariates and labels alike.", False)
    binary: bool = option(
        "Logistic regression for labels 0 and 1, without --y-bounds. Any other label is missing: "
        "name other classes with --classes.",
        False,
    )
    classes: str | None = option(
        "Logistic regression for two labels that are known without the data, the negative one "
        "first, such as No,Yes.",
        metavar="NEGATIVE,POSITIVE",
    )
    loss: str | None = option(
        "What predictions estimate, as a loss: huber for the mean, or quantile:0.9.  "
        "[default: huber]",
        metavar="NAME",
    )
    epsilon: float | None = option("ε of the guarantee.")
    delta: float | None = option("δ of the guarantee, far below 1/rows.")
    y_bounds: tuple[float, float] | None = option(
        "Smallest and largest label, chosen before seeing any.", metavar="LOW HIGH"
    )
    private_y_bounds: bool = option(
        "Find the range of the labels with noise, in place of --y-bounds.", False
    )
    bounds: str | None = option(
        "With --record-dp: data dictionary with the bounds of the columns, see `privasso bounds`; "
        "or find ranges in the data with noise.",
        metavar="FILE|private",
    )
    private_scales: bool = option(
        "With --record-dp: find ranges, centres, scales with noise.", False
    )
    shape: str | None = option(
        "With --record-dp: noise that follows the correlations of public rows of the same columns, "
        "or of the data, found with noise.",
        metavar="FILE|private",
    )
    share: float | None = option("Part of the budget for what is found with noise.  [default: 0.2]")
    screen: str | None = option(
        "With --label-dp or --record-dp: choose K columns with noise, and fit these; or fit all.  "
        "[default: what is expected to predict best]",
        metavar="K|auto|all",
    )
    intervals: str | None = option(
        "Intervals for the coefficients without penalty and ridge, at a part of the budget: of "
        "least-squares, of clipped residuals (huber), or both.  [both, if given without a value]",
        metavar="[both|least-squares|huber]",
    )
    mechanism: str | None = option(
        "--label-dp: auto, objective, release. --record-dp: objective, statistics, auto."
    )
    neighbours: str | None = option(
        "Data sets differ in one label or record that is emptied, or replaced by another one.  "
        "[default: replaced for labels, emptied for records]",
        metavar="emptied|replaced",
    )
    kappa: float | None = option(
        "Largest residual that is not clipped, as a part of the label range."
    )
    t: float | None = option("Ridge is R²/t: a larger t shrinks less and needs more noise.")
    on_average: bool = option("Noise of a given level, no worst-case claim, no ε.", False)
    sigma: float | None = option("Noise level of --on-average.")
    scales: str | None = option(
        "With --on-average: file of prior scales, or a law such as uniform."
    )
    noise: str | None = option("auto, shaped, isotropic, gram, power:GAMMA.  [default: auto]")
    design: Path | None = option("Design of `privasso design --out`: shape of the noise, and λ.")
    lam: str | None = option("λ, M times scikit-learn's alpha, or auto.  [default: auto]")
    aim: str = option(
        "What an automatic λ is for: predict, select (noise alone gives no coefficient), auto.",
        "auto",
    )
    lam_path: str | None = option("Values of λ for the path: L1,L2,… (free).")
    path_out: Path | None = option("Coefficients along the path, csv or parquet.")
    no_intercept: bool = option("Fit through the origin.", False)
    out: Path | None = option("Where the model goes, a JSON file.")
    report: Path | None = option("Where the report goes, HTML.")
    keep_release: Path | None = option("Save the noisy statistics; other λ then cost no privacy.")
    from_release: Path | None = option("Solve from a kept release: reads no labels, costs nothing.")
    ledger: Path | None = option("Budget to charge first, from `privasso ledger create`.")
    time_limit: float | None = option(
        "Seconds for choosing λ and solving, after the release.  [default: no limit]"
    )
    seed: int | None = option("Fixed noise for experiments: NOT FOR RELEASE.")
    dry_run: bool = option("Show noise and predictions; reads no labels, spends nothing.", False)
    no_target_column: bool = option("With --dry-run: the file holds no labels at all.", False)
    assume_rho: float = option("For predictions: share of non-zero coefficients.", 0.3)
    assume_r2: float | None = option(
        "For predictions: share of label variance explained.  [default: anything]"
    )
    assume_label_sd: float | None = option("For predictions: deviation of the labels.  [width/6]")
    engine: str | None = option("With --record-dp: read files in blocks, here (local) or on dask.")
    scheduler: str | None = option(
        "Address of a Dask scheduler, tls://….  [default: threads, no cluster]"
    )
    memory: str | None = option("Memory that reading in blocks may take, such as 4GB.")
    labels: Path | None = option(
        "With a .bed file: labels by FID and IID, as in PLINK's --pheno.  [.fam]"
    )
    row_names: bool = option(
        "Each line of a CSV or TSV file begins with the name of its row, which the header has no "
        "field for (write.table of R).",
        False,
    )
    force: Force = False

    def __post_init__(self) -> None:
        if self.classes is not None:
            object.__setattr__(self, "binary", True)

    def given(self, *names: str) -> str | None:
        """The first of these options that was given, as it is written; None if none was."""
        for name in names:
            value = getattr(self, name)
            if value is not None and value is not False and value != []:
                return option_name(name)
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
    def label_bounds(self) -> tuple[float, float] | Literal["private"] | None:
        """Bounds of the labels: those given, or 0 and 1 with --binary."""
        if self.private_y_bounds:
            return "private"
        return (0.0, 1.0) if self.binary and self.y_bounds is None else self.y_bounds

    def named_classes(self) -> Classes | None:
        """The classes of a logistic regression; None for a linear model.

        They are numbers if both names read as such, as a cell does.
        """
        from privasso.encoding import class_names
        from privasso.fit import Classes

        if self.classes is None:
            return Classes() if self.binary else None
        if self.y_bounds is not None:
            raise ValueError("--classes and --y-bounds cannot be given together; keep one")
        try:
            names = next(csv.reader([self.classes], skipinitialspace=True), [])
            return Classes.given(class_names(names))
        except (csv.Error, ValueError):
            raise ValueError(
                "--classes must be two different names with a comma between them, the negative one "
                f"first, such as No,Yes, and none that stands for a missing value, not "
                f"{self.classes!r}"
            ) from None

    def named_loss(self) -> Loss:
        """What the fit is about."""
        from privasso.problem import Logistic, loss_from_name

        if self.binary and self.loss is not None:
            option = self.given("classes", "binary")
            raise ValueError(f"{option} and --loss both say what the fit is about; keep one")
        with named("--loss", ValueError):
            return Logistic() if self.binary else loss_from_name(self.loss or "huber")

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
        from privasso.encoding import read_dictionary

        if self.bounds is None or self.bounds == "private":
            return None
        with named(f"--bounds {self.bounds}"):
            return read_dictionary(self.bounds)

    @cached_property
    def saved(self) -> SavedDesign | None:
        """The content of the file of --design, read once, so that the whole fit uses the same."""
        from privasso.design import load_design

        if self.design is None:
            return None
        with named(f"--design {self.design}"):
            return load_design(self.design)

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

    def screened(self) -> int | Literal["auto", "all"] | None:
        """How many columns to choose before the fit; models at other λ need a fit of all."""
        if self.screen is None:
            return "all" if self.given("lam_path", "path_out", "keep_release") else None
        if self.screen in ("auto", "all"):
            return cast(Literal["auto", "all"], self.screen)
        if not self.screen.isdecimal() or int(self.screen) < 1:
            raise ValueError(
                f"--screen must be auto, all or a number of columns, not {self.screen!r}"
            )
        return int(self.screen)

    @cached_property
    def references(self) -> dict[str, str]:
        """The level of each column of --reference."""
        found = {}
        for text in self.reference or ():
            column, separator, level = text.partition("=")
            if not separator or not column or not level:
                raise ValueError(f"--reference must be COLUMN=LEVEL, not {text!r}")
            if column in found:
                raise ValueError(f"--reference has the column {column!r} twice")
            found[column] = level
        return found

    @property
    def targets(self) -> bool | str:
        """What intervals are wanted for: a name, True for all, or False."""
        if self.intervals not in (None, *INTERVAL_VALUES):
            raise ValueError(
                f"--intervals must be both, least-squares or huber, not {self.intervals!r}"
            )
        return self.intervals == "both" or self.intervals or False


def _positive(option: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{option} {text!r} is not a number") from None
    return positive_float(option, number)


def fit(settings: FitSettings, as_json: AsJson = False) -> None:
    """Fit a sparse linear model with privacy noise and write it as one JSON file.

    Write bounds of the columns into the form of `privasso bounds`. Then see what the noise will
    do, without reading a record:

    `privasso fit patients.csv --target pressure --record-dp --epsilon 1 --delta 1e-6
    --y-bounds 60 200 --bounds bounds.csv --dry-run`

    Then fit:

    `privasso fit patients.csv --target pressure --record-dp --epsilon 1 --delta 1e-6
    --y-bounds 60 200 --bounds bounds.csv --out model.json --report report.html`

    If the covariates are public and only the labels are private:

    `privasso fit patients.csv --target pressure --label-dp --epsilon 1 --delta 1e-6
    --y-bounds 60 200 --out model.json --keep-release release.json`

    Tables of many files are read in blocks of rows and need not fit in memory:

    `privasso fit 'claims/*.parquet' --target cost --record-dp --epsilon 1 --delta 1e-6
    --y-bounds 0 5000 --bounds bounds.csv --memory 4GB --out model.json`

    Genotypes of PLINK stay packed while some variants are chosen. Labels are those of the .fam
    file, or --labels FILE --target COLUMN, and bounds are 0 to 2 copies:

    `privasso fit study.bed --record-dp --epsilon 3 --delta 1e-6 --y-bounds 15 45 --screen 10
    --labels bmi.txt --target bmi --out model.json`

    For labels of two classes, --classes or (for 0 and 1) --binary fits a logistic regression, of
    which `privasso predict` gives probabilities. A label of no class is a missing one, and nothing
    tells how many there are:

    `privasso fit patients.csv --target relapse --classes No,Yes --label-dp --epsilon 1 --delta 1e-6
    --out model.json`

    Under --label-dp text columns become one 0/1 column per level, such as `region=north`. Columns
    that look like identifiers, dates and missing values are refused until an option settles what
    to do.

    Several fits of the same people share the budget of a ledger, in which each is entered before
    its noise is drawn:

    `privasso ledger create budget.json --epsilon 3 --delta 1e-6`, then `privasso fit …
    --ledger budget.json`

    Another λ from a kept release costs nothing and needs no labels:

    `privasso fit patients.csv --from-release release.json --lam 5000 --out model2.json`
    """
    from privasso.cli._fit_check import check

    check(settings)
    if settings.dry_run:
        from privasso.cli._fit_plan import dry_run

        dry_run(settings, as_json)
    else:
        from privasso.cli._fit_run import run

        run(settings, as_json=as_json)
