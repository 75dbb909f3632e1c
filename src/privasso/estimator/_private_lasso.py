"""The scikit-learn estimator of a private fit."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from privasso._types import Matrix, Seed, Weights
from privasso._validation import real_labels
from privasso.blocks import PHENOTYPE, RowBlocks, SparseTable, blocks_of, is_bed, sparse_of
from privasso.estimator._base import PrivateEstimator
from privasso.fit import (
    CoefficientPath,
    Outcome,
)
from privasso.ledger import Ledger
from privasso.model import Model
from privasso.noise import Noise
from privasso.planning import Aim
from privasso.privacy import Privacy, Scales
from privasso.problem import Huber, Logistic, Loss


class PrivateLasso(RegressorMixin, PrivateEstimator):
    """Sparse linear regression (a LASSO) under a privacy guarantee.

    `privacy` says what is protected. The noise is drawn once per fit, and columns need not be
    standardised.

    With `RecordDP` rows are clipped to public bounds, and the minimiser of
    Σ ℓ(y_μ − f_μᵀx) + λ‖x‖₁ + Λ‖x‖²/2 + ηᵀx is released, with a loss ℓ of bounded slope and
    normal noise η. Another λ is another fit.

    With `LabelDP` the covariates are public, so everything that they tell is free: the noise has
    the best covariance for the rows at hand. Since its law is known exactly, the release is turned
    into the best guess m of the coefficients before the LASSO runs, on the predictions Fm instead
    of y (`denoise`). Another λ costs nothing. λ is M times the ``alpha`` of scikit-learn's
    ``Lasso`` on standardised columns.

    With `OnAverage`, or without `denoise`, it is min_x ½‖y − Fx‖² + λ‖x‖₁ + ηᵀx, λ is M times
    ``alpha`` on the columns as they are, and their units matter.

    Parameters
    ----------
    lam : float or "auto"
        λ > 0. With `LabelDP` ``"auto"`` chooses it from the release alone, at no privacy cost; with
        `RecordDP` it follows from the number of rows. `OnAverage` needs a number.
    privacy : RecordDP, LabelDP or OnAverage
        What to protect. There is no default: leaving it out is an error at fit.
    noise : NoiseDesign, Shaped or str
        How the noise is distributed over the columns (its level is ignored, `privacy` sets it):
        ``Shaped()`` or ``"shaped"`` for the best covariance for the rows, a design, or
        ``"isotropic"``, ``"gram"``, ``"power:GAMMA"`` for variances that follow the scales of the
        columns. ``"auto"`` is ``"shaped"`` for `LabelDP` with up to 2048 columns and
        ``"power:0.5"`` with more, ``"power:1"`` for `OnAverage`. ``"optimal"`` chooses the power
        of v by state evolution, and needs `model`: under `LabelDP` the least predicted error at
        that budget, for the columns at hand; under `OnAverage` the least OnAveKL in the model at
        that sigma and λ.
    scales : None, "data", array_like of shape (N,) or ScaleLaw
        Where the design finds the column scales; None is ``"data"``. Under `LabelDP` the scales of
        the data cost nothing, because covariates are public; under `OnAverage` they reveal
        something about the columns. A law does not say which column has which scale, so all
        columns get the same variance.
    fit_intercept : bool
        Centre the columns and release a noisy label sum.
    method : {"auto", "amp", "cd"}
        Algorithm; see `solve`.
    model : Model, optional
        With `OnAverage`, the model under which the guarantee reports the on-average KL
        divergence; with ``noise="optimal"``, the model to optimise for.
    tol : float
        Largest violation of an optimality condition, relative to λ.
    denoise : bool
        Run the LASSO on the best guess from the release (see `posterior`) instead of the release
        itself. False gives the estimator of the formula above. Only with `LabelDP` and up to 2048
        columns; `denoised_` says whether it was done.
    time_limit : float, optional
        Seconds that `fit`, `refit` and `path` may take after the release. With ``lam="auto"`` λ is
        then chosen among the values solved so far, with a `TimeLimitWarning`; with a number, `fit`
        raises `NotConvergedError`, and the release is kept.
    random_state : None, int, numpy Generator or RandomState
        None draws the noise from the operating system's entropy. Anything else is for
        experiments and marks the guarantee "not for release".
    ledger : Ledger, optional
        A budget that several fits share: each fit is entered before its noise is drawn, and one
        that would exceed it is refused. Not with `OnAverage`. Without one, a second fit of the same
        labels in a process warns. `refit` and `path` cost nothing and are not entered.
    screen : "auto", "all", int or None
        Choose so many columns first, by their association with the labels and with noise, and fit
        only these: for many columns and few rows. ``"auto"`` decides from the size of the table,
        and from X where it is public, how many, at which share of the budget, and whether to fit
        all columns instead. With `LabelDP` it may also fit leading principal components beside the
        chosen columns. With `RecordDP` X may then be sparse. Not with `OnAverage`. ``"all"`` fits
        all columns. None is ``"auto"`` for plain fits of 40 columns and more, and ``"all"`` where
        another option asks for all: a number for `lam`, `intervals`, `noise`, ``denoise=False``,
        weights of rows.
    loss : Huber, Quantile or Logistic, optional
        What predictions estimate: the mean of the labels (the default), a quantile, or the
        probability of a label 1 where labels are 0 and 1. `PrivateLogisticLasso` is a classifier
        with names of classes.
    intervals : bool or {"least-squares", "huber"}
        Use half of the squared sensitivity that the budget allows for intervals of the coefficients
        of the population: `confint` and `summary` return them. True is for both targets; one target
        alone has shorter intervals. The fit itself then has about 1.4 times the noise.
    aim : {"auto", "predict", "select"}
        What ``lam="auto"`` is for. ``"predict"``: the sparsest of the models that predict
        practically best. ``"select"``: where labels have nothing to do with the columns, all
        coefficients are zero with a probability of at least 95 %. That is so for labels and columns
        as `select_lam` and `selecting_lam` suppose them: normal labels that vary by at most a sixth
        of their range, for example. ``"auto"`` is ``"select"`` under `LabelDP` where the release
        says that this loses at most 0.005 of R²; it is ``"predict"`` under `RecordDP`, and where
        columns were chosen first.

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
    denoised_ : bool
        Whether the LASSO ran on the best guess from the release.
    noise_ : NoiseDesign or Shaped
        The noise at the level that was used.
    release_ : KeptRelease
        Only with `LabelDP`: the result of the mechanism, from which `refit` and `path` start. The
        guarantee covers it, so keeping it costs nothing.
    statistics_ : KeptStatistics
        The same for `RecordDP` with ``mechanism="statistics"``.
    coef_se_ : ndarray of shape (n_features,)
        Only where the mechanism gives them, as `LabelDP` does, and without `intervals`: standard
        errors of the coefficients, privacy noise included, given which of them are not zero; NaN
        for the others. They do not cover what λ and the ridge shrink: see `confint`.
    intervals_ : Intervals
        Only with `intervals`: what `confint` reads.
    screened_ : ndarray of int
        Only with `screen`: indices of the columns that were chosen. All other coefficients are
        zero, unless principal components were fitted, too.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> rng = np.random.default_rng(0)
    >>> scales = np.array([0.01, 0.1, 1.0, 10.0, 100.0])
    >>> X = rng.standard_normal((2000, 5)) * scales
    >>> y = np.clip(0.5 * X[:, 2] + 0.05 * X[:, 3], -2, 2)
    >>> bounds = np.column_stack([-4 * scales, 4 * scales])  # known beforehand
    >>> privacy = pv.RecordDP(epsilon=1.0, delta=1e-6, bounds=bounds, y_bounds=(-2, 2))
    >>> est = pv.PrivateLasso(privacy=privacy).fit(X, y)
    >>> est.guarantee_.kind, est.guarantee_.for_release
    ('record-dp', True)
    >>> est.coef_.shape, est.score(X, y) > 0.9
    ((5,), True)
    """

    _fitted = (
        "coef_", "intercept_", "lam_", "denoised_", "guarantee_", "noise_", "release_",
        "statistics_", "coef_se_", "screened_", "intervals_",
    )  # fmt: skip

    def __init__(
        self,
        lam: float | str = "auto",
        privacy: Privacy | None = None,
        noise: Noise | str = "auto",
        scales: Scales = None,
        fit_intercept: bool = True,
        method: str = "auto",
        model: Model | None = None,
        tol: float = 1e-8,
        denoise: bool = True,
        time_limit: float | None = None,
        random_state: Seed = None,
        ledger: Ledger | None = None,
        screen: int | str | None = None,
        loss: Loss | None = None,
        intervals: bool | str = False,
        aim: str = "auto",
    ) -> None:
        self.lam = lam
        self.privacy = privacy
        self.noise = noise
        self.scales = scales
        self.fit_intercept = fit_intercept
        self.method = method
        self.model = model
        self.tol = tol
        self.denoise = denoise
        self.time_limit = time_limit
        self.random_state = random_state
        self.ledger = ledger
        self.screen = screen
        self.loss = loss
        self.intervals = intervals
        self.aim = aim

    def fit(
        self, X: Matrix, y: ArrayLike | None = None, sample_weight: Weights = None
    ) -> PrivateLasso:
        """Let the mechanism read the rows, and compute everything else from what it released.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_samples, n_features)
            Covariates; public under `LabelDP`. Dense X is copied once when `fit_intercept`. With
            `RecordDP` also `numpy.memmap`, a Dask array or data frame, a list of Parquet or Arrow
            files, or `RowBlocks`: these are read in blocks, and give the same model to the last
            bit. An `AnnData`, or the path of an .h5ad or .mtx file, is a sparse matrix. The path of
            a .bed file of PLINK is a table of copies of alleles; missing ones count as one copy
            with `RecordDP`, as the mean of their column with `LabelDP`.
        y : array_like, shape (n_samples,)
            Labels. With files and data frames of Dask also the name of their column, with AnnData
            of a column of `obs`, and with a .bed file ``"pheno"`` for that of the .fam file.
        sample_weight : array_like of shape (n_samples,), optional
            Weights of the rows, zero or more; only their ratios matter. They must be public:
            neither they nor their choice may depend on the labels.

        Raises
        ------
        BudgetError
            The ledger has no room for this fit; nothing was drawn.
        UnboundedError
            No minimiser exists at this λ. With `LabelDP` the release is kept, and
            `refit` with the λ named in the message costs no further privacy.
        KeyboardInterrupt
            Ctrl-C. If it came after the release, the release is kept with `LabelDP`, and `refit`
            goes on from it at no further cost.
        """
        # All checks come before any noise is drawn.
        options = self._options(loss=self._loss)
        self._forget()
        given = X
        X, y, target = self._opened_blocks(X, y)
        if not isinstance(X, RowBlocks):
            X, y = self._validated(X, y)
        # Everything after it uses the release only.
        return self._take(
            self._released(X, y, options, given, sample_weight=sample_weight, target=target)
        )

    def refit(
        self, X: Matrix, lam: float | str = "auto", sample_weight: Weights = None
    ) -> PrivateLasso:
        """Solve again at another λ from the kept release, at no privacy cost.

        Parameters
        ----------
        X : array_like or sparse matrix
            The covariates of the fit, which the estimator does not keep; others are refused.
        lam : float or "auto"
            The new λ.
        sample_weight : array_like of shape (n_samples,), optional
            The weights of the fit, if it had any; others are refused.
        """
        return self._take(self._opened(X, "refit", sample_weight), lam)

    def path(self, X: Matrix, lams: ArrayLike, sample_weight: Weights = None) -> CoefficientPath:
        """Coefficients at each of several λ from the kept release, at no privacy cost.

        Parameters
        ----------
        X : array_like or sparse matrix
            The covariates of the fit; others are refused.
        lams : array_like of shape (K,)
            Values of λ.
        sample_weight : array_like of shape (n_samples,), optional
            The weights of the fit, if it had any; others are refused.
        """
        return self._opened(X, "path", sample_weight).path(lams)

    def predict(self, X: Matrix) -> np.ndarray:
        """Return ``X @ coef_ + intercept_``, as a probability with ``loss=Logistic()``."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "coef_")
        X, _ = self._validated(X)
        return self._loss.mean(X @ self.coef_ + self.intercept_)

    def score(self, X: Matrix, y: ArrayLike, sample_weight: Weights = None) -> float:
        """Return R² of the predictions for these labels, or the same for a quantile.

        It is computed from the labels without noise. For the labels of the fit, and for any others
        that are to be protected, it is not private: the guarantee does not cover it.
        """
        table = sparse_of(X, y)
        if table is not None:
            X, y = table, cast(ArrayLike, table.y)
        elif is_bed(X) and isinstance(y, str):
            X = cast(RowBlocks, blocks_of(X, y, private=self._private))
            y = X.labels
        predicted = self.predict(X)
        labels = real_labels(self._column(y), predicted.size, finite=True)
        weights = self._weights(sample_weight, labels.size)
        return self._loss.score(labels, predicted, weights)

    @property
    def _loss(self) -> Loss:
        return Huber() if self.loss is None else self.loss

    @property
    def _class_names(self) -> tuple[int, int] | None:
        return (0, 1) if isinstance(self._loss, Logistic) else None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _opened_blocks(
        self, X: Matrix, y: ArrayLike | None
    ) -> tuple[Matrix | SparseTable | RowBlocks, ArrayLike | None, str | None]:
        """Covariates and labels, as blocks of rows where they are not all in memory."""
        table = sparse_of(X, y)
        if table is not None:
            return table, table.y, y if isinstance(y, str) else None
        y = self._column(y) if is_bed(X) and not isinstance(y, str) else y
        blocks = blocks_of(X, y, private=self._private)
        if blocks is None:
            return X, y, None
        self._note_columns(blocks.shape[1], blocks.names)
        return blocks, None, blocks.target

    def _validated(self, X: Matrix, *labels: ArrayLike | None) -> tuple[Matrix, np.ndarray | None]:
        if is_bed(X):
            X = blocks_of(X, PHENOTYPE, private=self._private)
        X = self._covariates(X, first=bool(labels))
        if not labels:
            return X, None
        return X, real_labels(self._column(labels[0]), X.shape[0], finite=not self._formal)

    def _opened(self, X: Matrix, verb: str, sample_weight: Weights) -> Outcome:
        """Return the kept release with its covariates."""
        self._check_kept(verb)
        if hasattr(self, "statistics_"):
            return self.statistics_.open(X, sample_weight=sample_weight)
        if not isinstance(X, RowBlocks):
            X, _ = self._validated(X)
        return self.release_.open(
            X,
            sample_weight=sample_weight,
            denoise=bool(self.denoise),
            method=self.method,
            tol=self.tol,
            time_limit=self.time_limit,
            aim=cast(Aim, self.aim),
        )
