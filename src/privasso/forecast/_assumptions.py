"""What a forecast assumes about the labels, which it does not read."""

from __future__ import annotations

from dataclasses import dataclass

from privasso._tuned import EXPLAINED
from privasso._validation import positive_float

#: What somebody who states a rough number means: a share of non-zero coefficients and the odds of
#: an explained share are right up to a factor of 3, a deviation of the labels up to a third.
_FACTOR, _THIRD = 3.0, 1.0 / 3.0
#: Shares that covariates explain of nearly all real tables in the documentation.
_ANY = (0.05, 0.95)


@dataclass(frozen=True)
class Assumptions:
    """Rough numbers about labels and coefficients; none of them comes from the labels.

    Parameters
    ----------
    rho : float
        Share of the coefficients that are not zero, in (0, 1].
    r2 : float or None
        Share of the label variance that the covariates explain, in (0, 1); None if nothing is known
        of it.
    label_sd : float
        Standard deviation of the labels.
    """

    rho: float
    r2: float | None
    label_sd: float

    def __post_init__(self) -> None:
        if positive_float("rho", self.rho) > 1.0:
            raise ValueError(f"rho is a share and must not exceed 1, not {self.rho!r}")
        if self.r2 is not None and positive_float("r2", self.r2) >= 1.0:
            raise ValueError(f"r2 must be below 1, not {self.r2!r}")
        positive_float("label_sd", self.label_sd)

    def check_width(self, width: float) -> None:
        """Refuse a deviation that labels within bounds of this distance cannot have.

        >>> Assumptions(0.1, 0.5, 3.0).check_width(4.0)
        Traceback (most recent call last):
        ...
        ValueError: the assumed standard deviation of the labels, 3, is impossible: their bounds \
are 4 apart, and it is at most half of that
        """
        if self.label_sd > 0.5 * width:
            raise ValueError(
                f"the assumed standard deviation of the labels, {self.label_sd:g}, is impossible: "
                f"their bounds are {width:g} apart, and it is at most half of that"
            )

    @property
    def rho_range(self) -> tuple[float, float]:
        """From ρ/3 to 3ρ."""
        return self.rho / _FACTOR, min(1.0, self.rho * _FACTOR)

    @property
    def r2_range(self) -> tuple[float, float]:
        """From a third of the odds r2/(1 − r2) to three times these, or nearly anything."""
        if self.r2 is None:
            return _ANY
        odds = self.r2 / (1.0 - self.r2)
        return odds / (_FACTOR + odds), _FACTOR * odds / (1.0 + _FACTOR * odds)

    @property
    def label_sd_range(self) -> tuple[float, float]:
        """From 2/3 to 4/3 of the deviation."""
        return self.label_sd * (1.0 - _THIRD), self.label_sd * (1.0 + _THIRD)

    @property
    def usual_r2(self) -> float:
        """One number: what is supposed of any table if nothing is known."""
        return EXPLAINED if self.r2 is None else self.r2

    def in_words(self) -> str:
        """Say which truths a simulation draws; see `Population.draw`."""
        rho, r2, sd = self.rho_range, self.r2_range, self.label_sd_range
        return (
            f"Each simulated fit has a truth of its own. A share of {rho[0]:.2g} to {rho[1]:.2g} "
            "of the coefficients, at least one, is not zero (evenly on a logarithmic scale); these "
            "are drawn from one normal law for standardised columns. The labels have a standard "
            f"deviation of {sd[0]:.3g} to {sd[1]:.3g}, and the covariates explain a share of "
            f"{r2[0]:.2g} to {r2[1]:.2g} of their variance (evenly in the logarithm of the odds). "
            "The mean label is anywhere between the bounds, two standard deviations away from "
            "both if there is room."
        )

    def as_model(self) -> str:
        """Say what state evolution assumes."""
        return (
            f"independent Gaussian columns of the scales at hand, a share of {self.rho:g} of the "
            f"coefficients not zero and drawn from one normal law, and labels with standard "
            f"deviation {self.label_sd:.4g}, of whose variance the covariates explain a share of "
            f"{self.usual_r2:g}"
        )
