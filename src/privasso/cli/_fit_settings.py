"""The options of `privasso fit`, checked before anything is read."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from privasso._text import escaped
from privasso._validation import generator, positive_float

if TYPE_CHECKING:
    import numpy as np

    from privasso.design import SavedDesign
    from privasso.encoding import Dictionary
    from privasso.fit import Classes
    from privasso.noise import NoiseDesign
    from privasso.privacy import Privacy

#: Options that were decided when a kept release was made.
_DECIDED = (
    "target", "features", "exclude", "categorical", "keep", "missing", "label_dp", "record_dp",
    "on_average", "epsilon", "delta", "y_bounds", "bounds", "private_scales", "shape", "share",
    "screen", "mechanism", "kappa", "t", "sigma", "scales", "noise", "design", "no_intercept",
    "keep_release", "ledger", "seed", "dry_run", "no_target_column",
)  # fmt: skip
_OTHERS = (
    "binary",
    "labels",
    "row_names",
    "engine",
    "scheduler",
    "memory",
    "from_release",
    "lam",
    "lam_path",
    "path_out",
    "out",
    "report",
    "time_limit",
)


@dataclass(frozen=True)
class FitSettings:
    """The options of `privasso fit`, as given; None for those that were not."""

    data: Path | None
    target: str | None = None
    features: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    label_dp: bool = False
    on_average: bool = False
    epsilon: float | None = None
    delta: float | None = None
    y_bounds: tuple[float, float] | None = None
    sigma: float | None = None
    scales: str | None = None
    noise: str | None = None
    design: Path | None = None
    no_intercept: bool = False
    lam: str | None = None
    lam_path: str | None = None
    path_out: Path | None = None
    out: Path | None = None
    report: Path | None = None
    keep_release: Path | None = None
    from_release: Path | None = None
    ledger: Path | None = None
    seed: int | None = None
    dry_run: bool = False
    no_target_column: bool = False
    assume_rho: float = 0.3
    assume_r2: float = 0.5
    assume_label_sd: float | None = None
    time_limit: float | None = None
    categorical: tuple[str, ...] | None = None
    keep: tuple[str, ...] | None = None
    missing: str | None = None
    record_dp: bool = False
    bounds: str | None = None
    private_scales: bool = False
    shape: str | None = None
    share: float | None = None
    mechanism: str | None = None
    kappa: float | None = None
    t: float | None = None
    screen: str | None = None
    binary: bool = False
    engine: str | None = None
    scheduler: str | None = None
    memory: str | None = None
    labels: Path | None = None
    row_names: bool = False
    force: bool = False

    def check(self) -> None:
        """Refuse options that contradict or need one another."""
        self._check_blocks()
        if self.data is not None and self.data.is_dir():
            raise ValueError(
                f"{escaped(self.data)} is a folder, not a file; all of its Parquet files are one "
                f"table with '{escaped(self.data / '*.parquet')}', in quotes"
            )
        kinds = (self.label_dp, self.record_dp, self.on_average, self.from_release is not None)
        if not any(kinds) and self.target is None:
            raise ValueError(
                "a fit needs a column to predict and what is to be protected; try privasso fit "
                f"{escaped(self.source)} --target COLUMN --label-dp --epsilon 1 --delta 1e-6 "
                "--y-bounds LOW HIGH --dry-run"
            )
        if self.out is None and not self.dry_run:
            raise ValueError("--out MODEL.json says where the model goes; it is missing")
        self.lams()
        if self.time_limit is not None:
            positive_float("--time-limit", self.time_limit)
        if self.lam_path is not None and self.path_out is None and self.report is None:
            raise ValueError("--lam-path needs --path-out or --report to show the path in")
        if self.from_release is not None:
            for name in _DECIDED:
                if getattr(self, name) not in (None, False):
                    raise ValueError(
                        f"{option_of(name)} cannot be given with --from-release, because the "
                        "release was made with a value of its own; leave it out"
                    )
            return
        if self.no_target_column and not self.dry_run:
            raise ValueError(
                "--no-target-column belongs to --dry-run: a fit needs the column of labels"
            )
        self.missing_rule()
        self.screened()
        privacy = self.privacy()
        if self.binary:
            privacy = privacy.for_classes()
            if self.screen is not None and self.label_dp:
                raise ValueError("--screen is for linear models; leave --binary or --screen out")
        self._check_release_use(privacy)
        if self.ledger is not None and not privacy.formal:
            raise ValueError(
                "--ledger needs --label-dp or --record-dp: --on-average bounds no loss to charge"
            )
        self.named_noise()
        self.rng()

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
        asked = any(x is not None for x in (self.engine, self.scheduler, self.memory))
        return asked or (
            (self.record_dp or self.label_dp)
            and self.data is not None
            and any(mark in str(self.data) for mark in "*?[")
            and not self.data.exists()
        )

    def _check_blocks(self) -> None:
        """Refuse options that a table in blocks, or one of genotypes, does not have."""
        if self.labels is not None and not self.genotypes:
            raise ValueError("--labels is for genotypes, a .bed file; name a column with --target")
        if self.genotypes and self.in_blocks:
            raise ValueError("a .bed file is one file; leave out --engine, --memory and patterns")
        if self.engine not in (None, "local", "dask"):
            raise ValueError(f"--engine must be local or dask, not {self.engine!r}")
        if self.scheduler is not None and self.engine != "dask":
            raise ValueError("--scheduler needs --engine dask")
        if not self.in_blocks:
            return
        if not (self.record_dp or self.label_dp):
            raise ValueError("tables in blocks (--engine, --memory) need --record-dp or --label-dp")
        for name in ("report", "dry_run", "scales", "categorical") if self.label_dp else ():
            if getattr(self, name) not in (None, False):
                raise ValueError(
                    f"{option_of(name)} needs the whole table in memory for --label-dp, and this "
                    "one is read in blocks; leave it out"
                )
        for name in ("binary", "from_release", "row_names"):
            if getattr(self, name) not in (None, False):
                raise ValueError(
                    f"{option_of(name)} needs the whole table in memory, and this one is read in "
                    "blocks; leave it out"
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

    def privacy(self) -> Privacy:
        """What to protect."""
        from privasso.cli._fit_privacy import privacy_from

        return privacy_from(self)

    def _check_release_use(self, privacy: Privacy) -> None:
        """Refuse what needs a release that the guarantee covers."""
        if privacy.covers_release:
            return
        if self.record_dp:
            self.check_statistics()
            return
        if self.lam_value() is None and not self.dry_run:
            raise ValueError(
                "--on-average needs a number for --lam: choosing it from the data would leak; "
                "--dry-run suggests one"
            )
        for name in ("lam_path", "path_out", "keep_release"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{option_of(name)} needs --label-dp: under --on-average only the coefficients "
                    "at one λ are published, and nothing else of the fit is kept"
                )

    def check_screened(self) -> None:
        """Refuse what needs a release to solve from, which chosen columns do not leave."""
        for name in ("lam_path", "path_out", "keep_release"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{option_of(name)} needs a release that other models are solved from, and a "
                    "fit of chosen columns leaves none; leave it or --screen out"
                )

    def check_statistics(self, released: bool | None = None) -> None:
        """Refuse what needs statistics that are released, where a minimiser is.

        With --mechanism auto this is known only when the size of the table is, and `released` says
        it.
        """
        released = self.mechanism in ("statistics", "auto") if released is None else released
        for name in ("lam_path", "path_out", "keep_release"):
            if getattr(self, name) is not None and not released:
                raise ValueError(
                    f"{option_of(name)} needs --mechanism statistics under --record-dp: a "
                    "perturbed objective publishes the coefficients at one λ and nothing that "
                    "another could be solved from"
                )

    def named_noise(self) -> NoiseDesign | str:
        """The noise design, or "auto" or "shaped"; under --label-dp the budget sets its level."""
        from privasso.noise import noise_from_name

        if self.saved is not None:
            if self.noise is not None:
                raise ValueError("--noise and --design both say how the noise is spread; keep one")
            return self.saved.noise
        if self.noise in (None, "auto", "shaped"):
            return self.noise or "auto"
        assert self.noise is not None
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
        if self.lam in (None, "auto"):
            return None
        assert self.lam is not None
        return _positive("--lam", self.lam)

    def lams(self) -> list[float] | None:
        """The values of --lam-path; --lam is checked too."""
        self.lam_value()
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

    @property
    def screened_at_most(self) -> int | None:
        """How many columns are fitted at most, after a choice; None where all may be."""
        screen = self.screened()
        return screen if isinstance(screen, int) else None

    def missing_rule(self) -> str:
        """What becomes of missing covariates."""
        from privasso.encoding import MISSING_RULES

        rule = self.missing or "error"
        if rule not in MISSING_RULES:
            raise ValueError(f"--missing must be one of {', '.join(MISSING_RULES)}, not {rule!r}")
        return rule

    def command(self) -> str:
        """The command that does this again, one option per line."""
        lines = [_words("privasso", "fit", *self._data_words)]
        for name in _DECIDED + _OTHERS:
            option, value = option_of(name), getattr(self, name)
            if value is True:
                lines.append(option)
            elif isinstance(value, tuple) and isinstance(value[0], str):
                lines += [_words(option, part) for part in value]
            elif isinstance(value, tuple):
                lines.append(" ".join([option, *map(_number, value)]))
            elif value not in (None, False):
                shown = _number(value) if isinstance(value, float) else str(value)
                lines.append(_words(option, shown))
        return " \\\n    ".join(lines)

    @property
    def _data_words(self) -> tuple[str, ...]:
        return () if self.data is None else (str(self.data),)

    def solve_again_command(self) -> str | None:
        """The command that solves from the kept release at another λ, if there is one."""
        where = self.from_release or self.keep_release
        if where is None:
            return None
        data = () if self.record_dp else self._data_words
        words = ["privasso", "fit", *data, "--from-release", str(where)]
        words += ["--binary"] if self.binary else []
        words += ["--row-names"] if data and self.row_names else []
        return _words(*words, "--lam", "LAMBDA", "--out", "another-model.json")


def _number(value: float) -> str:
    """The shortest decimals that stand for the same number.

    >>> _number(1e-05), _number(140.0), _number(0.1 + 0.2)
    ('1e-05', '140', '0.30000000000000004')
    """
    return repr(float(value)).removesuffix(".0")


def _words(*words: str) -> str:
    r"""Words of a command, quoted for a shell; control characters appear as escapes.

    Examples
    --------
    >>> print(_words("fit", "my data.csv", "a\nb's"))
    fit 'my data.csv' $'a\nb\'s'
    """
    return " ".join(
        shlex.quote(word) if word.isprintable() else f"$'{''.join(map(_char, word))}'"
        for word in words
    )


def _char(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # a byte of a path that is not Unicode
        return f"\\x{ord(char) - 0xDC00:02x}"
    return f"\\{char}" if char in "\\'" else escaped(char)


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
