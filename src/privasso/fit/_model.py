"""A published model: coefficients, names and the privacy statement."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import expit

from privasso._covariates import covariates
from privasso._types import Frame, Matrix
from privasso._version import __version__
from privasso.blocks import LabelsWithin
from privasso.encoding import Encoding, columns_of_frame, parameter_words
from privasso.fit._classes import Name
from privasso.noise import Noise
from privasso.privacy import Guarantee
from privasso.programs import Intervals

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class CoefficientPath:
    """Coefficients at several λ from one release.

    Attributes
    ----------
    lams : ndarray of shape (K,)
        As asked for, in that order.
    coef : ndarray of shape (N, K)
        Coefficients; NaN where no minimiser exists or was found.
    intercept : ndarray of shape (K,)
        Intercepts.
    status : ndarray of Status, shape (K,)
        How each solve ended.
    """

    lams: np.ndarray
    coef: np.ndarray = field(repr=False)
    intercept: np.ndarray = field(repr=False)
    status: np.ndarray = field(repr=False)


#: What is noted of a coefficient whose interval holds zero.
_ZERO = "cannot be told from zero"


@dataclass(frozen=True, eq=False)
class ReleasedModel:
    """A fitted model that may be published: what predictions need, and the privacy statement.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        Coefficients.
    intercept : float
        Intercept.
    lam : float
        The λ of the fit.
    guarantee : Guarantee
        The privacy statement.
    noise : NoiseDesign, Shaped or None
        The noise at the level that was used; None if a file could not describe it.
    feature_names : tuple of str or None
        Names of the columns, if the fit knew them.
    denoised : bool
        Whether the LASSO ran on the best guess from the release instead of the release itself.
    software : str
        Version of privasso that wrote it.
    encoding : Encoding or None
        How the columns of a table become the columns of the model, if that is not as they are.
    coef_se : ndarray of shape (n_features,) or None
        Standard errors of the coefficients, privacy noise included, given which of them are not
        zero; NaN for the others. They say how a coefficient varies from fit to fit, and nothing of
        the shrinkage by penalty and ridge. None where the mechanism has none, and where there are
        intervals, which do. Files do not hold them.
    screened : ndarray of int or None
        Indices of the columns that were chosen before the fit; None where all were fitted. Files
        do not hold them.
    intervals : Intervals or None
        Laws of the coefficients of the population, if the fit released what they follow from.
    target : str or None
        Name of what is predicted, if the fit knew it.
    classes : (negative, positive) or None
        Names of the two classes of a logistic regression, whose coefficients are log odds of the
        positive one. None for a linear model.

    Examples
    --------
    >>> import privasso as pv
    >>> est = pv.PrivateLasso(1.0, pv.OnAverage(0.1)).fit(np.eye(9), np.arange(9.0))
    >>> model = est.released_model()
    >>> model.n_features, bool((model.predict(np.eye(9)) == est.predict(np.eye(9))).all())
    (9, True)
    """

    coef: np.ndarray = field(repr=False)
    intercept: float
    lam: float
    guarantee: Guarantee = field(repr=False)
    noise: Noise | None
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    denoised: bool = False
    software: str = __version__
    encoding: Encoding | None = field(default=None, repr=False)
    coef_se: np.ndarray | None = field(default=None, repr=False)
    screened: np.ndarray | None = field(default=None, repr=False)
    classes: tuple[Name, Name] | None = None
    intervals: Intervals | None = field(default=None, repr=False)
    target: str | None = None

    def in_range(self, within: LabelsWithin) -> ReleasedModel:
        """The model of the labels themselves, from that of their places in a range."""
        width = within.width
        return replace(
            self,
            coef=width * self.coef,
            intercept=within.middle + width * self.intercept,
            lam=width * self.lam,
            coef_se=None if self.coef_se is None else width * self.coef_se,
            guarantee=self.guarantee.with_bounds(within.low, within.high),
            noise=None if self.noise is None else self.noise.with_sigma(width * self.noise.sigma),
            intervals=None if self.intervals is None else self.intervals.scaled(width),
        )

    @property
    def n_features(self) -> int:
        """Number of columns that `predict` expects."""
        return self.coef.size

    def predict(self, X: Matrix, *, unknown: Literal["error", "ignore"] = "error") -> np.ndarray:
        """Return ``X @ coef + intercept``, or the more probable class of a logistic regression.

        X and `unknown` are as in `linear`.
        """
        found = self.linear(X, unknown=unknown)
        return found if self.classes is None else chosen_classes(found, self.classes)

    def predict_proba(
        self, X: Matrix, *, unknown: Literal["error", "ignore"] = "error"
    ) -> np.ndarray:
        """Return the probabilities of the negative and the positive class, of shape (M, 2)."""
        if self.classes is None:
            raise ValueError("the model is linear and gives no probabilities; use predict")
        return both_probabilities(self.linear(X, unknown=unknown))

    def needed(self) -> ReleasedModel:
        """Return the same model without the columns of a table that do not change predictions.

        A column is left out if the coefficients of all its levels, or its own, are zero. A model
        that knows no names needs all columns, in their order.

        Examples
        --------
        >>> import numpy as np, privasso as pv
        >>> statement = pv.Guarantee(None, released=("coefficients",))
        >>> names = ("age", "dose", "weight")
        >>> model = pv.ReleasedModel(
        ...     np.array([2.0, 0.0, 1.0]), 0.0, 1.0, statement, None, feature_names=names
        ... )
        >>> model.needed().feature_names
        ('age', 'weight')
        """
        if self.feature_names is None:
            return self
        if self.encoding is None:
            kept = self.coef != 0.0
            encoding = None
        else:
            codes = self.encoding.codes
            counts = [len(code.outputs) for code in codes]
            pieces = np.split(self.coef != 0.0, np.cumsum(counts)[:-1])
            used = [bool(piece.any()) for piece in pieces]
            kept = np.repeat(used, counts)
            encoding = Encoding(tuple(code for code, use in zip(codes, used, strict=True) if use))
        return replace(
            self,
            coef=self.coef[kept],
            feature_names=tuple(np.array(self.feature_names, dtype=object)[kept]),
            encoding=encoding,
            coef_se=None if self.coef_se is None else self.coef_se[kept],
            screened=None,
            intervals=None if self.intervals is None else self.intervals.selected(kept),
        )

    def chosen(self) -> ReleasedModel:
        """Return the same model without the columns that were not chosen before the fit."""
        at, names = self.screened, self.feature_names
        assert at is not None
        return replace(
            self,
            coef=self.coef[at],
            feature_names=None if names is None else tuple(names[k] for k in at),
            coef_se=None if self.coef_se is None else self.coef_se[at],
            screened=np.arange(at.size),
            intervals=None if self.intervals is None else self.intervals.selected(at),
        )

    def confint(
        self, level: float = 0.95, target: str | None = None, *, simultaneous: bool = False
    ) -> np.ndarray:
        """Low and high of each coefficient of the population, of shape (n, 2).

        NaN stands where none can be given. The fit must have been one with ``intervals=True``.

        Parameters
        ----------
        level : float
            How often an interval holds the coefficient of the population.
        target : "least-squares", "huber" or "logistic"
            Whose coefficient it is: that of least squares (the default of linear fits), or of
            residuals clipped at `kappa` of the intervals, or the log odds of logistic regression.
        simultaneous : bool
            Whether all intervals are to hold at once so often.
        """
        return self._known_intervals().confint(level, target, simultaneous=simultaneous)

    def summary(self, level: float = 0.95, target: str | None = None) -> pl.DataFrame:
        """The coefficients as a table of polars, with intervals if the fit has any.

        `coefficient` is that of the model, which a penalty and a ridge shrink; `estimate` is the
        middle of the interval, without either. `note` says what cannot be told. With two classes
        odds ratios follow.
        """
        import polars as pl

        names = self.feature_names or tuple(f"x{k}" for k in range(self.n_features))
        table: dict[str, list[str] | np.ndarray] = {"column": list(names), "coefficient": self.coef}
        if self.intervals is None:
            return pl.DataFrame(table)
        ends = self.confint(level, target)
        table |= {
            "estimate": self.intervals.estimates(target),
            "low": ends[:, 0],
            "high": ends[:, 1],
        }
        if self.classes is not None:
            with np.errstate(over="ignore"):
                table |= {
                    f"odds ratio{part}": np.exp(table[name])
                    for part, name in (("", "estimate"), (", low", "low"), (", high", "high"))
                }
        table["note"] = self.notes(level, target)
        return pl.DataFrame(table, nan_to_null=True)

    def notes(self, level: float = 0.95, target: str | None = None) -> list[str]:
        """What cannot be told of each coefficient: whether it is zero, or anything at all."""
        intervals = self._known_intervals()
        ends = intervals.confint(level, target)
        zero = (ends[:, 0] <= 0.0) & (ends[:, 1] >= 0.0)
        return [
            _ZERO if holds_zero else reason
            for holds_zero, reason in zip(zero.tolist(), intervals.reasons(target), strict=True)
        ]

    def _known_intervals(self) -> Intervals:
        if self.intervals is None:
            raise ValueError(
                "intervals are released with the fit, at a part of its budget: fit again with "
                "intervals=True (--intervals)"
            )
        return self.intervals

    def linear(self, X: Matrix, *, unknown: Literal["error", "ignore"] = "error") -> np.ndarray:
        """Return ``X @ coef + intercept``: predictions, or log odds of the positive class.

        A data frame has its columns taken by name when the model knows names, and encoded as in
        the fit; columns whose coefficients are zero may be missing. Anything else must have the
        columns of the model in their order. A level that the model does not know is an error, or
        with ``unknown="ignore"`` counts as the reference.
        """
        if self.feature_names is not None and hasattr(X, "columns"):
            needed = self.needed()
            return needed.matrix(X, unknown) @ needed.coef + self.intercept
        X = covariates(X)
        if X.shape[1] != self.n_features:
            raise ValueError(f"X must have {self.n_features} columns, not {X.shape[1]}")
        return X @ self.coef + self.intercept

    def matrix(self, frame: Frame, unknown: Literal["error", "ignore"] = "error") -> Matrix:
        """The columns of a data frame, found by name and encoded as in the fit."""
        if self.n_features == 0:
            return np.zeros((len(frame), 0))
        if self.encoding is not None:
            inputs, levels = self.encoding.inputs, self.encoding.categorical
            table = columns_of_frame(frame, inputs, categorical=levels)
            return self.encoding.matrix(table, unknown=unknown, words=parameter_words)
        assert self.feature_names is not None
        present = {str(name) for name in frame.columns}
        missing = [name for name in self.feature_names if name not in present]
        if missing:
            raise ValueError(f"X lacks the column {missing[0]!r}, which the model needs")
        return covariates(frame[list(self.feature_names)])


def both_probabilities(odds: np.ndarray) -> np.ndarray:
    """Probabilities of the negative and the positive class from log odds.

    >>> both_probabilities(np.array([0.0, 800.0]))
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    return np.column_stack([expit(-odds), expit(odds)])


def chosen_classes(odds: np.ndarray, classes: tuple[Name, Name]) -> np.ndarray:
    """The positive class where its log odds are positive.

    >>> chosen_classes(np.array([-0.1, 0.1]), ("no", "yes")).tolist()
    ['no', 'yes']
    """
    return np.asarray(classes)[(odds > 0.0).astype(np.intp)]
