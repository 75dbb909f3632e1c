"""The scikit-learn classifier of a private fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from privasso._types import Matrix, Seed, Weights
from privasso._validation import attempt, check_length
from privasso.estimator._base import PrivateEstimator
from privasso.fit import (
    Classes,
    CoefficientPath,
    Name,
    Outcome,
    both_probabilities,
    chosen_classes,
)
from privasso.ledger import Ledger
from privasso.privacy import Privacy

#: Take the classes from the labels.
_OBSERVED = "observed"


class PrivateLogisticLasso(ClassifierMixin, PrivateEstimator):
    """Sparse logistic regression with a privacy guarantee, for labels of two classes.

    Under `LabelDP` the covariates are public. The logistic loss depends on the labels through Fᵀy
    alone, which is released once, with Gaussian noise of the best covariance for the rows. As the
    law of the noise is known, the release gives a best guess of the probabilities of all rows, and
    a LASSO on these is solved at any λ at no further cost.

    Under `RecordDP` whole records are protected: noise and a small ridge are added to the
    objective, and its minimiser is released, at one λ.

    Columns need not be standardised.

    Parameters
    ----------
    lam : float or "auto"
        λ > 0. Under `LabelDP` it is the 1/C of scikit-learn's ``LogisticRegression`` on
        standardised columns, and ``"auto"`` takes the sparsest model that predicts practically as
        well as the best guess. Under `RecordDP` columns are in units of their bounds, and
        ``"auto"`` depends on the number of rows alone.
    privacy : LabelDP or RecordDP
        What to protect; `y_bounds` must be (0, 1), because classes are coded as 0 and 1. There is
        no default: leaving it out is an error at fit.
    classes : (negative, positive) or "observed"
        The two classes. They must be known without the labels; any other label counts as a missing
        one. ``"observed"`` takes them from the labels in increasing order, and the guarantee then
        says that this must not tell anything.
    fit_intercept : bool
        Whether there is an intercept, which has no penalty.
    tol : float
        Largest violation of an optimality condition, relative to the terms of the gradient.
    time_limit : float, optional
        Seconds that `fit`, `refit` and `path` may take after the release, under `LabelDP`.
    random_state : None, int, numpy Generator or RandomState
        None draws the noise from the operating system's entropy. Anything else is for
        experiments and marks the guarantee "not for release".
    ledger : Ledger, optional
        A budget that several fits share; see `PrivateLasso`.
    intervals : bool
        Whether a part of the budget is used for intervals; see `PrivateLasso`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Log odds of the positive class per unit of the columns.
    intercept_ : ndarray of shape (1,)
        Intercept.
    classes_ : ndarray of shape (2,)
        The negative and the positive class.
    guarantee_ : Guarantee
        What may be claimed; print it.
    lam_ : float
        The λ of `coef_`.
    noise_ : NoiseDesign or Shaped
        Only with `LabelDP`: the noise at the level that was used.
    release_ : KeptRelease
        Only with `LabelDP`: the result of the mechanism, from which `refit` and `path` start.
    coef_se_ : ndarray of shape (1, n_features)
        Only with `LabelDP` and without `intervals`: standard errors of the coefficients, privacy
        noise included, given which of them are not zero; NaN for the others. They do not cover
        what λ shrinks: see `confint`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 5)) * [0.01, 0.1, 1.0, 10.0, 100.0]
    >>> y = np.where(X[:, 2] + rng.logistic(size=2000) > 0, "yes", "no")
    >>> privacy = pv.LabelDP(epsilon=2.0, delta=1e-6, y_bounds=(0, 1))
    >>> est = pv.PrivateLogisticLasso(privacy=privacy, classes=("no", "yes")).fit(X, y)
    >>> est.predict_proba([[0, 0, 2.0, 0, 0]])[0, 1] > 0.7
    np.True_
    >>> est.path(X, [10.0, 100.0]).coef.shape  # no further cost
    (5, 2)
    """

    classes_: np.ndarray

    _by_class = True
    _fitted = (
        "coef_", "intercept_", "classes_", "lam_", "guarantee_", "noise_", "release_", "coef_se_",
        "intervals_",
    )  # fmt: skip

    def __init__(
        self,
        lam: float | str = "auto",
        privacy: Privacy | None = None,
        classes: Sequence[Name] = (0, 1),
        fit_intercept: bool = True,
        tol: float = 1e-8,
        time_limit: float | None = None,
        random_state: Seed = None,
        ledger: Ledger | None = None,
        intervals: bool | str = False,
    ) -> None:
        self.lam = lam
        self.privacy = privacy
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.time_limit = time_limit
        self.random_state = random_state
        self.ledger = ledger
        self.intervals = intervals

    def fit(self, X: Matrix, y: ArrayLike) -> PrivateLogisticLasso:
        """Read the labels once, with noise; everything else is computed from what was released.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_samples, n_features)
            Covariates; public under `LabelDP`. Sparse ones only with `LabelDP`. Missing ones (NaN)
            only with `RecordDP`: these count as the middle of their bounds.
        y : array_like, shape (n_samples,)
            Labels. One that is missing, or is none of the `classes`, counts as half of each under
            `LabelDP`, and makes its record an empty one under `RecordDP`.

        Raises
        ------
        BudgetError
            The ledger has no room for this fit; nothing was drawn.
        """
        # All checks come before any noise is drawn.
        observed = isinstance(self.classes, str) and self.classes == _OBSERVED
        classes = Classes() if observed else Classes.given(self.classes)
        options = self._options(classes=classes)
        self._forget()
        given, X = X, self._covariates(X, first=True)
        labels = self._labels(y, X.shape[0])
        if observed:
            classes = Classes.seen(labels)
            options = replace(options, classes=classes)
        # Everything after it uses the release only.
        released = self._released(X, classes.coded(labels), options, given)
        self.classes_ = np.asarray(classes.names)
        return self._take(released)

    def refit(self, X: Matrix, lam: float | str = "auto") -> PrivateLogisticLasso:
        """Solve again at another λ from the kept release, at no privacy cost.

        Parameters
        ----------
        X : array_like or sparse matrix
            The covariates of the fit, which the estimator does not keep; others are refused.
        lam : float or "auto"
            The new λ.
        """
        return self._take(self._opened(X, "refit"), lam)

    def path(self, X: Matrix, lams: ArrayLike) -> CoefficientPath:
        """Coefficients at each of several λ from the kept release, at no privacy cost.

        Parameters
        ----------
        X : array_like or sparse matrix
            The covariates of the fit; others are refused.
        lams : array_like of shape (K,)
            Values of λ.
        """
        return self._opened(X, "path").path(lams)

    def decision_function(self, X: Matrix) -> np.ndarray:
        """Return the log odds of the positive class."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "coef_")
        X = self._covariates(X)
        return X @ self.coef_[0] + self.intercept_[0]

    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Return the probabilities of both classes, of shape (n_samples, 2)."""
        return both_probabilities(self.decision_function(X))

    def predict(self, X: Matrix) -> np.ndarray:
        """Return the more probable class."""
        odds = self.decision_function(X)
        return chosen_classes(odds, self._class_names)

    def score(self, X: Matrix, y: ArrayLike, sample_weight: Weights = None) -> float:
        """Return the share of these labels that is predicted.

        It is computed from the labels without noise. For the labels of the fit, and for any others
        that are to be protected, it is not private: the guarantee does not cover it.
        """
        predicted = self.predict(X)
        labels = self._labels(y, predicted.size)
        weights = self._weights(sample_weight, labels.size)
        right = attempt(lambda: (labels.astype(object) == predicted.astype(object)).astype(float))
        if right is None:
            raise ValueError("the labels hold something that cannot be compared with the classes")
        return float(np.average(right, weights=weights))

    @property
    def _class_names(self) -> tuple[Name, Name]:
        negative, positive = self.classes_.tolist()
        return negative, positive

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.privacy is None or self.privacy.public_covariates
        tags.classifier_tags.multi_class = False
        return tags

    def _labels(self, y: object, n_rows: int) -> np.ndarray:
        """Return y as a vector of whatever type; no error quotes a label."""
        column = self._column(y)
        labels = attempt(lambda: np.asarray(column))
        if labels is None or labels.ndim != 1:
            raise ValueError("the labels must be one column, each of them one of the two classes")
        check_length(labels, n_rows)
        return labels

    def _opened(self, X: Matrix, verb: str) -> Outcome:
        """Return the kept release with its covariates."""
        self._check_kept(verb)
        return self.release_.open(
            self._covariates(X),
            tol=self.tol,
            time_limit=self.time_limit,
            classes=Classes.given(self.classes_.tolist()),
        )
