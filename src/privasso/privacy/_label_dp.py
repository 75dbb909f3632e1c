"""Label differential privacy: the covariates are public, the labels are not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from privasso._validation import check_coded
from privasso.accounting import Loss
from privasso.privacy._guarantee import Guarantee
from privasso.privacy._kind import Formal, LabelBounds, Terms, register_kind
from privasso.queries import Relation

#: Widths of the label bounds up to 2^±_ORDINARY need no unit of their own.
_ORDINARY = 200
_MECHANISMS = ("auto", "objective", "release")


@register_kind
@dataclass(frozen=True)
class LabelDP(Formal):
    """(ε, δ)-differential privacy of the labels, given public covariates F.

    For any two label vectors that differ in one entry, and any set of outputs A,
    P(A | y) ≤ e^ε P(A | y') + δ. Labels are clipped to `y_bounds`, which must be chosen before
    looking at the labels.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta : float
        δ in (0, 1), well below one over the number of rows.
    y_bounds : (float, float) or "private"
        Smallest and largest label; values outside are clipped without notice, since a count of
        them would itself depend on the labels. A missing label (NaN) counts as the middle. With
        ``"private"`` the range is found in the labels with noise, for a part of the budget.
    mechanism : {"auto", "objective", "release"}
        ``"objective"`` perturbs the objective of a regression with clipped residuals, whose noise
        is proportional to a residual. ``"release"`` adds Gaussian noise to the products of
        covariates and labels, proportional to the range of the labels. Coefficients at any λ are
        computed from either at no further cost. ``"auto"`` is ``"objective"``, except for more
        than 2^28 entries, for ε > 50, and for a noise design that is given.
    kappa : float, optional
        Of objective perturbation: the largest residual that is not clipped, as a part of the
        range of the labels. By default 0.1·(m/100)^(1/3), m = ε times the rows for each column,
        but at most 0.25, and at least 0.1, or 0.08 where a label is emptied. With more columns than
        rows the least is √(ε/3) times as large for ε > 3.
    t : float, optional
        Of objective perturbation: squared length of a row over the ridge. By default it is chosen
        from the covariates, see `clipped_settings`.
    level : bool, optional
        Of objective perturbation: whether a noisy mean of the labels corrects the intercept.
        Clipped residuals have their median at zero, and the mean differs where labels are skewed,
        or are zeros and ones. It takes a hundredth of the squared sensitivity that the budget
        allows. By default it is done where the budget and the number of rows leave so little
        noise in the mean that it helps, and no row has a weight of its own; see `direct_level`.
    neighbours : {"replaced", "emptied"}
        Whether one label becomes any other one, or is emptied: a record without a label then
        contributes nothing. That takes about half of the noise for the same ε and δ.

    Examples
    --------
    >>> from privasso import LabelDP
    >>> privacy = LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(0, 10))
    >>> privacy
    LabelDP(epsilon=1.0, delta=1e-06, y_bounds=(0.0, 10.0))
    >>> round(privacy.mu, 4)
    0.2367
    """

    epsilon: float
    delta: float
    y_bounds: LabelBounds
    mechanism: Literal["auto", "objective", "release"] = "auto"
    kappa: float | None = None
    t: float | None = None
    level: bool | None = None
    neighbours: Relation = "replaced"

    public_covariates: ClassVar[bool] = True
    covers_release: ClassVar[bool] = True
    one: ClassVar[Literal["label", "record"]] = "label"

    def __post_init__(self) -> None:
        self._check()
        if self.mechanism not in _MECHANISMS:
            raise ValueError(
                f"mechanism must be one of {', '.join(_MECHANISMS)}, not {self.mechanism!r}"
            )
        for name in ("kappa", "t", "level"):
            if getattr(self, name) is not None and self.mechanism == "release":
                raise ValueError(
                    f"{name} belongs to objective perturbation; leave it out, or choose "
                    "mechanism='objective'"
                )

    @property
    def unit(self) -> float:
        """The power of two in which labels are measured: 1 unless the bounds are extreme."""
        exponent = math.frexp(self.label_width)[1]
        return 1.0 if abs(exponent) <= _ORDINARY else math.ldexp(1.0, exponent)

    @property
    def units(self) -> float:
        """High minus low, in this unit."""
        return self.label_width / self.unit

    def for_classes(self) -> LabelDP:
        """Release products: the logistic loss depends on the labels through them alone.

        So nothing is gained by perturbing its objective, which needs the same Gaussian noise.
        """
        check_coded(self.y_bounds)
        if self.mechanism == "objective":
            raise ValueError(
                "mechanism='objective' is for linear models: a perturbed logistic regression needs "
                "the same noise as the release of products, which serves every λ; leave mechanism "
                "out"
            )
        return replace(self, mechanism="release")

    def guarantee(
        self, terms: Terms, losses: Sequence[Loss] | None = None, released: Sequence[str] = ()
    ) -> Guarantee:
        """State label differential privacy of what was asked, and of all that follows from it.

        Examples
        --------
        >>> import privasso as pv
        >>> from privasso.privacy import Terms
        >>> privacy = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1))
        >>> privacy.guarantee(Terms(fit_intercept=True, seeded=False, n_rows=100))["epsilon"]
        1.0
        """
        assumptions = [
            "the covariates are public, and neither their choice nor the settings of the fit "
            "depend on the labels"
        ]
        if not self.finds_range:
            assumptions.append("the label bounds were fixed before the labels were seen")
        return self._stated(terms, losses, assumptions, released)

    def composition(self, mu: float | None) -> str:
        """Gaussian mechanisms compose exactly; the loss of others is added up numerically."""
        if mu is None:
            return (
                "Further fits on the same labels add to the loss, and a ledger keeps count of "
                "them. Solving again from the same release adds nothing."
            )
        return (
            "Further fits on the same labels add to the loss: k releases like this one together "
            f"are a Gaussian mechanism of sensitivity √k · μ, here √k · {mu:.4g}. Solving again "
            "from the same release adds nothing."
        )

    def after_failure(self, kept: str) -> str:
        """The release is paid for and kept."""
        return (
            f"The privacy budget of this fit is spent, but nothing is lost: the release is kept "
            f"{kept}."
        )

    def __repr__(self) -> str:
        given = [
            f"epsilon={self.epsilon!r}",
            f"delta={self.delta!r}",
            f"y_bounds={self.y_bounds!r}",
        ]
        given += [] if self.mechanism == "auto" else [f"mechanism={self.mechanism!r}"]
        for name in ("kappa", "t", "level"):
            value = getattr(self, name)
            given += [] if value is None else [f"{name}={value!r}"]
        given += [] if self.neighbours == "replaced" else [f"neighbours={self.neighbours!r}"]
        return f"LabelDP({', '.join(given)})"
