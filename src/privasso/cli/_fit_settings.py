"""What `privasso fit` was asked to do, checked before anything is read."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasso._validation import generator, positive_float

if TYPE_CHECKING:
    from privasso.design import SavedDesign

#: Options that a kept release has decided already.
_DECIDED = {
    "target": "--target",
    "features": "--features",
    "exclude": "--exclude",
    "label_dp": "--label-dp",
    "on_average": "--on-average",
    "epsilon": "--epsilon",
    "delta": "--delta",
    "y_bounds": "--y-bounds",
    "sigma": "--sigma",
    "scales": "--scales",
    "noise": "--noise",
    "design": "--design",
    "no_intercept": "--no-intercept",
    "keep_release": "--keep-release",
    "seed": "--seed",
    "dry_run": "--dry-run",
}


@dataclass(frozen=True)
class FitSettings:
    """The options of `privasso fit`, as given; None where they were not."""

    data: Path
    target: str | None = None
    features: str | None = None
    exclude: str | None = None
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
    seed: int | None = None
    dry_run: bool = False
    assume_rho: float = 0.1
    assume_r2: float = 0.5
    assume_label_sd: float | None = None

    def check(self) -> None:
        """Refuse options that contradict or lack one another."""
        if self.out is None and not self.dry_run:
            raise ValueError("--out MODEL.json says where the model goes; it is missing")
        self.lams()
        if self.lam_path is not None and self.path_out is None and self.report is None:
            raise ValueError("--lam-path needs --path-out or --report to show the path in")
        if self.from_release is not None:
            for name, option in _DECIDED.items():
                if getattr(self, name) not in (None, False):
                    raise ValueError(
                        f"{option} has no place beside --from-release, which has settled it; "
                        "leave it out"
                    )
            return
        if self.label_dp == self.on_average:
            raise ValueError(
                "say what to protect: --label-dp for differential privacy of the labels, or "
                "--on-average for noise without a worst-case claim"
            )
        if self.on_average:
            self._check_on_average()
        self.privacy()
        self.shape()
        generator(self.seed)

    def _check_on_average(self) -> None:
        if self.lam_value() is None and not self.dry_run:
            raise ValueError(
                "--on-average needs a number for --lam: choosing it from the data would leak; "
                "--dry-run suggests one"
            )
        for value, option in (
            (self.lam_path, "--lam-path"),
            (self.path_out, "--path-out"),
            (self.keep_release, "--keep-release"),
        ):
            if value is not None:
                raise ValueError(
                    f"{option} needs --label-dp: on average only the coefficients at one λ are "
                    "published, and nothing else of the fit is kept"
                )

    def privacy(self) -> Any:
        """What to protect, as a `LabelDP` or an `OnAverage`."""
        from privasso.mechanism import LabelDP, OnAverage

        if self.on_average:
            foreign = {
                "--epsilon": self.epsilon,
                "--delta": self.delta,
                "--y-bounds": self.y_bounds,
            }
            for option, value in foreign.items():
                if value is not None:
                    raise ValueError(f"{option} belongs to --label-dp; --on-average has no ε")
            if self.sigma is not None:
                return OnAverage(self.sigma)
            if self.saved is None:
                raise ValueError("--on-average needs --sigma, the level of the noise, or --design")
            return OnAverage(self.saved.noise.sigma)
        for option, value in (("--sigma", self.sigma), ("--scales", self.scales)):
            if value is not None:
                raise ValueError(
                    f"{option} belongs to --on-average; the budget sets the noise here"
                )
        if self.epsilon is None or self.delta is None:
            raise ValueError("--label-dp needs --epsilon and --delta")
        if self.y_bounds is None:
            raise ValueError(
                "--label-dp needs --y-bounds LOW HIGH, chosen before looking at the labels"
            )
        return LabelDP(self.epsilon, self.delta, self.y_bounds)

    def shape(self) -> Any:
        """The noise design; under --label-dp the budget decides its level."""
        from privasso.estimator import design_from
        from privasso.noise import design_from_name

        if self.saved is not None:
            if self.noise is not None:
                raise ValueError("--noise and --design both say how the noise is spread; keep one")
            return self.saved.noise
        if self.noise in (None, "auto"):
            return design_from("auto", self.privacy())
        assert self.noise is not None
        if self.noise == "optimal":
            raise ValueError(
                "--noise optimal needs a model of the data, which a file does not tell; find the "
                "design with `privasso design … --out design.json` and pass it as --design"
            )
        return design_from_name("--noise", self.noise, 1.0)

    @cached_property
    def saved(self) -> SavedDesign | None:
        """What the file of --design holds; read once, so that all of a fit goes by the same."""
        from privasso.design import DesignFileError, load_design

        if self.design is None:
            return None
        try:
            return load_design(self.design)
        except DesignFileError as error:
            raise ValueError(f"--design {self.design}: {error}") from None

    def lam_value(self) -> float | None:
        """λ, or None where it is to be chosen from the release."""
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

    def names(self, what: str | None) -> list[str] | None:
        """A comma-separated list of columns."""
        return None if what is None else [part.strip() for part in what.split(",") if part.strip()]

    def command(self) -> str:
        """The command that does this again, an option a line."""
        lines = [shlex.join(["privasso", "fit", str(self.data)])]
        for name, option in {
            **_DECIDED,
            "from_release": "--from-release",
            "lam": "--lam",
            "lam_path": "--lam-path",
            "path_out": "--path-out",
            "out": "--out",
            "report": "--report",
        }.items():
            value = getattr(self, name)
            if value is True:
                lines.append(option)
            elif isinstance(value, tuple):
                lines.append(" ".join([option, *(f"{x:.17g}" for x in value)]))
            elif value not in (None, False):
                shown = f"{value:.17g}" if isinstance(value, float) else str(value)
                lines.append(shlex.join([option, shown]))
        return " \\\n    ".join(lines)


def _positive(option: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{option} {text!r} is not a number") from None
    return positive_float(option, number)
