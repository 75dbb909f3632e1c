"""The scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from privasso._validation import positive_float
from privasso.estimator._optimal import optimal_shape
from privasso.estimator._options import (
    design_from,
    generator_from,
    needs_label_dp,
    regularisation,
    solver_name,
)
from privasso.estimator._postprocess import CoefficientPath, Postprocess
from privasso.estimator._steps import automatic_lambda, released, statement
from privasso.guarantee import Guarantee
from privasso.mechanism import LabelDP, OnAverage, Release
from privasso.model import Model
from privasso.noise import NoiseDesign
from privasso.operators import Covariates
from privasso.solvers import SolveError

_FITTED = ("coef_", "intercept_", "lam_", "guarantee_", "noise_", "release_")


class PrivateLasso(RegressorMixin, BaseEstimator):
    """LASSO with privacy noise: min_x ½‖y − Fx‖² + λ‖x‖₁ + ηᵀx, with a statement of what holds.

    Columns need no standardising. The noise is drawn once in a fit; labels are read by the
    mechanism (`release_labels`) and by nothing after it. Note that λ multiplies a sum over
    rows: it is M times the ``alpha`` of scikit-learn's ``Lasso``.

    Parameters
    ----------
    lam : float or "auto"
        λ > 0. ``"auto"`` chooses it from the release alone, by Stein's unbiased risk estimate,
        at no privacy cost; only with `LabelDP`.
    privacy : LabelDP or OnAverage
        What to protect. There is no default: leaving it out is an error at fit.
    noise : NoiseDesign or str
        How noise is shared out among columns: a design (its level is ignored, `privacy` sets
        it), or ``"isotropic"``, ``"gram"``, ``"power:GAMMA"``. ``"auto"`` is ``"power:0.5"`` for
        `LabelDP`, which needs the least total noise, and ``"power:1"`` for `OnAverage`.
        ``"optimal"`` chooses the power by state evolution, and needs `model`: under `LabelDP`
        the least predicted error at that budget, for the columns at hand; under `OnAverage` the
        least OnAveKL in the model at that sigma and λ.
    scales : None, "data", array_like of shape (N,) or ScaleLaw
        Where the design finds the column scales; None is ``"data"``. Under `LabelDP` the data's
        own scales cost nothing, because covariates are public; under `OnAverage` they are a leak
        for any worst-case reading. A law does not say which column has which scale, and
        gives all the same variance.
    fit_intercept : bool
        Centre the columns and release a noisy label sum.
    solver : {"auto", "amp", "cd"}
        See `solve`.
    model : Model, optional
        With `OnAverage`, the model under which the guarantee reports the on-average KL
        divergence; with ``noise="optimal"``, the model to optimise for.
    tol : float
        Largest violation of an optimality condition, relative to λ.
    random_state : None, int, numpy Generator or RandomState
        None draws the noise from the operating system's entropy. Anything else is for
        experiments and marks the guarantee "not for release".

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients.
    intercept_ : float
        Intercept.
    guarantee_ : Guarantee
        What may be claimed; print it.
    lam_ : float
        The λ of `coef_`.
    noise_ : NoiseDesign
        The design at the level that was used.
    release_ : Release
        Only with `LabelDP`: what left the mechanism. It is already covered by the guarantee,
        so keeping it costs nothing, and `refit` and `path` start from it.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 5)) * [0.01, 0.1, 1.0, 10.0, 100.0]
    >>> y = np.clip(0.5 * X[:, 2] + 0.05 * X[:, 3], -2, 2)
    >>> privacy = pv.LabelDP(epsilon=2.0, delta=1e-6, y_bounds=(-2, 2))
    >>> est = pv.PrivateLasso(lam=50.0, privacy=privacy).fit(X, y)
    >>> est.guarantee_.kind, est.guarantee_.for_release
    ('label-dp', True)
    >>> est.path(X, [50.0, 100.0]).coef.shape  # no further cost
    (5, 2)
    """

    coef_: np.ndarray
    intercept_: float
    guarantee_: Guarantee
    lam_: float
    noise_: NoiseDesign
    release_: Release
    n_features_in_: int

    def __init__(
        self,
        lam: float | str = 1.0,
        privacy: LabelDP | OnAverage | None = None,
        noise: NoiseDesign | str = "auto",
        scales: Any = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        model: Model | None = None,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> None:
        self.lam = lam
        self.privacy = privacy
        self.noise = noise
        self.scales = scales
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.model = model
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> PrivateLasso:
        """Release noisy products of X and y, then solve from the release alone.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_samples, n_features)
            Covariates; public under `LabelDP`. Dense X is copied once when `fit_intercept`.
        y : array_like, shape (n_samples,)
            Labels.

        Raises
        ------
        UnboundedError
            No minimiser exists at this λ. With `LabelDP` the release is kept, and
            `refit` with the λ that the message names costs nothing.
        """
        # Everything that can be refused is refused before any noise is drawn.
        privacy = self._checked_privacy()
        lam = regularisation(self.lam, privacy)
        wanted = self.noise if not _is_optimal(self.noise) else "auto"
        design = design_from(wanted, privacy)
        solver_name(self.solver)
        positive_float("tol", self.tol)
        if self.model is not None and not isinstance(self.model, Model):
            raise ValueError("model must be a Model or None")
        rng = generator_from(self.random_state)
        for name in _FITTED:
            self.__dict__.pop(name, None)

        X, y = self._validated(X, y)
        rows = Covariates(X, centre=bool(self.fit_intercept))
        if _is_optimal(self.noise):
            design = optimal_shape(privacy, self.model, lam, rows)
        release, self.noise_ = released(rows, y, privacy, design, scales=self.scales, rng=rng)
        del y  # from here on there is only the release
        self.guarantee_ = statement(
            privacy,
            self.noise_,
            scales=self.scales,
            fit_intercept=bool(self.fit_intercept),
            from_os_entropy=self.random_state is None,
            model=self.model,
            lam=lam,
        )
        if isinstance(privacy, LabelDP):
            self.release_ = release
        post = Postprocess(release, rows, method=self.solver, tol=self.tol)
        if lam is None:
            assert isinstance(privacy, LabelDP)
            lam = automatic_lambda(post, privacy.width)
        self._solve(post, lam)
        return self

    def refit(self, X: Any, lam: float | str) -> PrivateLasso:
        """Solve again at another λ from the release that is kept; no privacy cost.

        Parameters
        ----------
        X : array_like or sparse matrix
            The covariates of the fit. The estimator does not keep them.
        lam : float or "auto"
            The new λ.
        """
        privacy = needs_label_dp(self, "refit")
        wanted = regularisation(lam, privacy)
        post = self._postprocess(X)
        if wanted is None:
            wanted = automatic_lambda(post, privacy.width)
        self._solve(post, wanted)
        return self

    def path(self, X: Any, lams: Any) -> CoefficientPath:
        """Coefficients at each of several λ from the release that is kept; no privacy cost.

        Parameters
        ----------
        X : array_like or sparse matrix
            The covariates of the fit.
        lams : array_like of shape (K,)
            Values of λ.
        """
        needs_label_dp(self, "path")
        return self._postprocess(X).path(lams)

    def predict(self, X: Any) -> np.ndarray:
        """Return ``X @ coef_ + intercept_``."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "coef_")
        X, _ = self._validated(X)
        return X @ self.coef_ + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _checked_privacy(self) -> LabelDP | OnAverage:
        if isinstance(self.privacy, (LabelDP, OnAverage)):
            return self.privacy
        raise ValueError(
            "privacy must say what to protect: LabelDP(epsilon, delta, y_bounds) for a formal "
            "guarantee of the labels, or OnAverage(sigma) for an average-case one; "
            f"got {type(self.privacy).__name__}"
        )

    def _validated(self, X: Any, *labels: Any) -> tuple[Any, Any]:
        from sklearn.utils.validation import validate_data

        options: dict[str, Any] = {
            "accept_sparse": ("csr", "csc"),
            "dtype": (np.float64, np.float32),
        }
        if not labels:
            return validate_data(self, X, reset=False, **options), None
        X, y = validate_data(self, X, labels[0], y_numeric=True, **options)
        return X, y

    def _postprocess(self, X: Any) -> Postprocess:
        X, _ = self._validated(X)
        rows = Covariates(X, centre=self.release_.fit_intercept)
        return Postprocess(self.release_, rows, method=solver_name(self.solver), tol=self.tol)

    def _solve(self, post: Postprocess, lam: float) -> None:
        try:
            self.coef_, self.intercept_ = post.solve(lam)
        except RuntimeError as error:  # a SolveError, or the linear programme gave up
            if isinstance(self.privacy, LabelDP):
                after = (
                    "The privacy budget of this fit is spent, and nothing is lost: the release "
                    "is kept in release_, and refit(X, lam) with another lam is free. "
                )
            else:
                after = (
                    "The noise of this fit has been drawn and is gone; fit again with a larger "
                    "lam or a smaller sigma. "
                )
            message = after + f"What happened: {str(error).rstrip('.')}."
            if not isinstance(error, SolveError):
                raise RuntimeError(message) from None
            raise type(error)(replace(error.solution, message=message)) from None
        self.lam_ = lam


def _is_optimal(noise: object) -> bool:
    return isinstance(noise, str) and noise == "optimal"
