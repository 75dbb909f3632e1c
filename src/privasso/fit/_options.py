"""The options of a fit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privasso._tuned import CHOICE_COLUMNS
from privasso._validation import positive_float
from privasso.design import best_power
from privasso.fit._classes import Classes
from privasso.ledger import Ledger
from privasso.model import Model
from privasso.noise import Noise, NoiseDesign, Shaped, noise_from_name
from privasso.operators import Covariates
from privasso.planning import AIMS, Aim, Screen, check_screen, release_mechanism
from privasso.privacy import Privacy, Scales, check_kind
from privasso.problem import Huber, Logistic, Loss
from privasso.programs import Target

_HUBER = Huber()
#: Algorithms that work from a release alone.
METHODS = ("auto", "amp", "cd")
_NOISE_WORDS = ("isotropic", "gram", "power")


@dataclass(frozen=True)
class FitOptions:
    """Options of a fit; every check that needs no data is made when it is built.

    Attributes
    ----------
    privacy : Privacy
        What to protect.
    lam : float, "auto" or None
        λ > 0. ``"auto"`` chooses it from the release, if the guarantee covers that. None leaves it
        open, for a plan that is not carried out or a λ that is given later.
    noise : NoiseDesign, Shaped or str
        How the noise is spread (its level is ignored), or ``"auto"``, ``"shaped"``,
        ``"optimal"``, ``"isotropic"``, ``"gram"`` or ``"power:GAMMA"``.
    scales : None, "data", array_like of shape (N,) or ScaleLaw
        Where the design finds the scales of the columns.
    fit_intercept : bool
        Centre the columns and release a noisy label sum.
    method : {"auto", "amp", "cd"}
        Algorithm; see `solve`.
    model : Model or None
        The model that average-case numbers and ``noise="optimal"`` refer to.
    tol : float
        Largest violation of an optimality condition, relative to λ.
    denoise : bool
        Run the LASSO on the best guess from the release instead of the release itself, where
        there is one; see `posterior`.
    time_limit : float or None
        Seconds for all that follows the release; None for no limit. It does not shorten the
        release itself. See `Released`.
    ledger : Ledger or None
        The budget to charge before noise is drawn; only with a formal kind of privacy.
    screen : "auto", "all", int or None
        Choose so many columns with noise, at a share of the budget, and fit these only. ``"auto"``
        decides by what is predicted from the size of the table; "all" fits all. None is "auto"
        where no other option asks for a fit of all columns; see `choice`.
    classes : Classes or None
        The two classes of a logistic regression; None for a linear model.
    loss : Loss
        What the fit is about: ``Huber()`` for the mean, ``Quantile(q)``, or ``Logistic()``.
    intervals : bool or str
        Whether a part of the budget is used for intervals for the coefficients; a name of a target
        asks for those of one target alone. See `targets`.
    aim : {"auto", "predict", "select"}
        What λ is for where it is not a number. To predict, it is small, or the largest that loses
        practically nothing. To select, it is so large that all coefficients are zero with a chance
        of 95 per cent where labels have nothing to do with the columns. "auto" selects where labels
        alone are private and their release says that it loses at most 0.005 of R².
    among : int or None
        How many columns those of the fit were chosen from, if they were.
    """

    privacy: Privacy
    lam: float | str | None = "auto"
    noise: Noise | str = "auto"
    scales: Scales = None
    fit_intercept: bool = True
    method: str = "auto"
    model: Model | None = None
    tol: float = 1e-8
    denoise: bool = True
    time_limit: float | None = None
    ledger: Ledger | None = None
    screen: Screen | None = None
    classes: Classes | None = None
    loss: Loss = _HUBER
    intervals: bool | str = False
    aim: Aim = "auto"
    among: int | None = None

    def __post_init__(self) -> None:
        check_kind(self.privacy)
        self._check_loss()
        self._check_intervals()
        if self.classes is not None:
            object.__setattr__(self, "privacy", self.privacy.for_classes())
            if self.screen not in (None, "all"):
                raise ValueError("screen is for linear models; leave it out with classes")
        if self.lam is not None:
            fixed_lambda(self.lam, self.privacy)
        if not isinstance(self.noise, NoiseDesign | Shaped):
            self._named_noise()
        if self.aim not in AIMS:
            raise ValueError(f"aim must be one of {', '.join(AIMS)}, not {self.aim!r}")
        if self.aim == "select" and not (self.privacy.formal and self.denoise):
            raise ValueError("aim='select' needs LabelDP or RecordDP, and denoise=True")
        if self.aim == "select" and self.classes is not None and not self.privacy.protects_records:
            raise ValueError(
                "aim='select' is not for logistic regression with LabelDP; leave it out"
            )
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, not {self.method!r}")
        positive_float("tol", self.tol)
        if self.time_limit is not None:
            positive_float("time_limit", self.time_limit)
        if self.model is not None and not isinstance(self.model, Model):
            raise ValueError("model must be a Model or None")
        if self.model is not None and self.model.covariance is not None:
            raise ValueError("model must have independent columns here; leave the covariance out")
        if self.ledger is not None:
            self._check_ledger()
        if self.screen is not None:
            check_screen(self.screen)
        if self.privacy.protects_records:
            self._check_perturbed()
        elif self.screen not in (None, "all") and not self.privacy.formal:
            raise ValueError(
                f"screen is not supported with {type(self.privacy).__name__}; leave it out, or use "
                "LabelDP or RecordDP"
            )

    def choice(self, n_columns: int) -> Screen | None:
        """What is asked of a choice of columns; None where planning is to decide.

        Planning decides on plain fits of many columns. A number for λ, or any other setting of a
        fit of all columns, and intervals, which are wanted for all, ask for such a fit.
        """
        words = (self.lam, self.noise, self.method)
        other = n_columns < CHOICE_COLUMNS or any(word != "auto" for word in words)
        other = other or not (self.fit_intercept and self.denoise)
        other = other or self.scales is not None or self.classes is not None or self.intervals
        other = other or not self.privacy.formal or not self.loss.about_mean
        given = (getattr(self.privacy, name, None) for name in ("level", "kappa", "t"))
        other = other or any(one is not None for one in given)
        other = other or getattr(self.privacy, "mechanism", None) == "release"
        return "all" if self.screen is None and other else self.screen

    def _check_loss(self) -> None:
        if not isinstance(self.loss, Loss):
            raise ValueError(
                "loss must be Huber(), Quantile(level) or Logistic(), "
                f"not an object of type {type(self.loss).__name__}"
            )
        if isinstance(self.loss, Logistic) and self.classes is None:
            object.__setattr__(self, "classes", Classes())
        if self.classes is not None:
            object.__setattr__(self, "loss", Logistic())
        elif not self.loss.about_mean and not self.privacy.formal:
            raise ValueError(f"{self.loss!r} needs LabelDP or RecordDP")
        clipped = isinstance(self.loss, Huber) and self.loss.kappa < math.inf
        if clipped and not self.privacy.protects_records:
            raise ValueError(
                "kappa of a Huber loss is for RecordDP; give Huber(), and kappa to LabelDP"
            )

    def _check_intervals(self) -> None:
        if self.intervals is False:
            return
        if not self.privacy.formal:
            raise ValueError("intervals need LabelDP or RecordDP, whose budget they are a part of")
        if not self.loss.about_mean and self.classes is None:
            raise ValueError(f"there are no intervals for {self.loss.about}; leave intervals out")
        known = ", ".join(map(repr, _targets(self.classes)))
        if self.intervals is not True and self.intervals not in _targets(self.classes):
            raise ValueError(f"intervals must be True, False or one of {known}")

    @property
    def targets(self) -> tuple[Target, ...]:
        """What there are to be intervals for: all that suit the loss, or the one that was asked."""
        known = _targets(self.classes)
        return known if self.intervals is True else tuple(t for t in known if t == self.intervals)

    def _check_perturbed(self) -> None:
        """Refuse options that belong to a release of products of rows and labels."""
        name = type(self.privacy).__name__
        if self.noise != "auto" or self.scales is not None:
            raise ValueError(
                f"{name} adds the same noise to all columns, scaled by their bounds; leave noise "
                "and scales out"
            )
        if self.method != "auto":
            raise ValueError(f"{name} has a solver of its own; leave method out")

    def _check_ledger(self) -> None:
        if not isinstance(self.ledger, Ledger):
            raise ValueError(
                "ledger must be a Ledger, such as Ledger(epsilon, delta) or Ledger.open(path), "
                f"not an object of type {type(self.ledger).__name__}"
            )
        if not self.privacy.formal:
            raise ValueError(
                f"{type(self.privacy).__name__} bounds no privacy loss that could be charged to a "
                "ledger; use LabelDP, or leave the ledger out"
            )

    @property
    def fixed_lam(self) -> float | None:
        """λ as a number, or None where it is chosen from the release or still open."""
        return None if self.lam is None else fixed_lambda(self.lam, self.privacy)

    def design(self, rows: Covariates) -> Noise:
        """Return how the noise is spread; its level is still to be calibrated."""
        if isinstance(self.noise, NoiseDesign | Shaped):
            return self.noise
        if self.noise == "optimal":
            assert self.model is not None
            return best_power(self.privacy, self.model, self.fixed_lam, rows)
        named = self._named_noise()
        return release_mechanism(self.privacy).default_noise(rows) if named is None else named

    def _named_noise(self) -> Noise | None:
        """Return the design of that name, or None where it depends on the privacy or the data."""
        name = self.noise
        if name == "auto":
            return None
        if name == "shaped":
            return Shaped()
        if name == "optimal":
            if self.model is None:
                raise ValueError(
                    "noise='optimal' needs model=Model(...), which describes the data to expect; "
                    "noise='auto' needs no model"
                )
            return None
        if isinstance(name, str) and name.partition(":")[0] in _NOISE_WORDS:
            return noise_from_name("noise", name, 1.0)
        raise ValueError(
            "noise must be a noise design or one of 'auto', 'shaped', 'optimal', 'isotropic', "
            f"'gram', 'power:GAMMA', not {name!r}"
        )


def _targets(classes: Classes | None) -> tuple[Target, ...]:
    return ("least-squares", "huber") if classes is None else ("logistic",)


def fixed_lambda(lam: float | str, privacy: Privacy) -> float | None:
    """Return λ as a number, or None for "auto"; refuse "auto" if the release must not be used.

    >>> import privasso as pv
    >>> fixed_lambda(3, pv.OnAverage(0.1))
    3.0
    """
    if not isinstance(lam, str):
        return positive_float("lam", lam)
    if lam != "auto":
        raise ValueError(f"lam must be a positive number or 'auto', not {lam!r}")
    if not privacy.automatic_lam:
        privacy.check_release_use("lam='auto'")
    return None
