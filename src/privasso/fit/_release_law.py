"""The law of a release given the coefficients, and the coefficients given a release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from privasso._blas import threads_for
from privasso.fit._gibbs import posterior_moments
from privasso.operators import Covariates
from privasso.programs import Release, sandwich_errors

#: The guess needs dense matrices over the columns.
MOST_COLUMNS = 2048
#: Largest variance of the signal, in units of that to expect of the labels: half the variance of
#: labels that are all at one of their bounds, three deviations from the middle.
_MOST_SIGNAL = 4.5
#: Variances of the signal that are tried, relative to the largest one, and the part of the
#: variance of the labels that is explained at the largest one.
_SIGNALS, _EXPLAINED = np.geomspace(1e-3, 1.0, 9), 0.9
#: Added to the covariance of the release, relative to its mean variance, against rounding.
_JITTER = 1e-10


@dataclass(frozen=True, eq=False)
class RowMoments:
    """G = Σ w_μ z_μz_μᵀ and G₂ = Σ w_μ² z_μz_μᵀ of rows z_μ = (f_μ, 1) with weights w_μ.

    Attributes
    ----------
    G, G2 : ndarray
        Over the live columns and, with an intercept, the column of ones, which is the last.
    scale : ndarray
        Root mean squares of the live columns: the units of standardised columns.
    intercept : bool
        Whether there is the column of ones.
    """

    G: np.ndarray = field(repr=False)
    G2: np.ndarray = field(repr=False)
    scale: np.ndarray = field(repr=False)
    intercept: bool

    @classmethod
    def of(
        cls, rows: Covariates, weights: np.ndarray | None, counts: np.ndarray | None = None
    ) -> RowMoments:
        """Moments of the rows, each of them repeated `counts` times."""
        once, twice = counts, counts
        if weights is not None:
            once = weights if counts is None else counts * weights
            twice = once * weights
        G = rows.moments(once, ones=rows.centred)
        G2 = G if weights is None else rows.moments(twice, ones=rows.centred)
        return cls(G, G2, np.sqrt(rows.squares[rows.live] / rows.total), rows.centred)

    def times(self, factor: float) -> RowMoments:
        """Moments of that many copies of all rows."""
        return RowMoments(factor * self.G, factor * self.G2, self.scale, self.intercept)

    @property
    def units(self) -> np.ndarray:
        """The scales of the columns, 1 for the column of ones."""
        return np.append(self.scale, 1.0) if self.intercept else self.scale


@dataclass(frozen=True, eq=False)
class ReleaseLaw:
    """B ~ N(Gx, τ²G₂ + Σ) for a release B, with the noise Σ and labels of variance τ² around Fx.

    Attributes
    ----------
    moments : RowMoments
        G and G₂.
    noise : ndarray
        Σ; see `joint_noise`.
    label_deviation : float
        Standard deviation to expect of the labels.
    many : bool
        Whether several releases will be read: factors of matrices are then kept.
    sweeps : int, optional
        Length of the chain of `posterior_moments`.
    """

    moments: RowMoments
    noise: np.ndarray = field(repr=False)
    label_deviation: float
    many: bool = False
    sweeps: int | None = None

    def posterior(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Mean and deviation of the coefficients, and the mean of the intercept."""
        G, G2, noise = self.standardised
        units, n = self.moments.units, self.moments.scale.size
        b = b / units / self.label_deviation
        V = self._unexplained(b) * G2 + noise
        V[np.diag_indices_from(V)] += _JITTER * np.trace(V) / V.shape[0]
        with threads_for(V.shape[0] ** 3 / 3):
            solved = cho_solve(cho_factor(V, lower=True), np.column_stack([G, b]))
            A, h = G @ solved[:, :-1], G @ solved[:, -1]
        A, unit = 0.5 * (A + A.T), self.label_deviation / units[:n]
        if not self.moments.intercept:
            mean, deviation = posterior_moments(A, h, _MOST_SIGNAL, sweeps=self.sweeps)
            return unit * mean, unit * deviation, 0.0
        # The intercept has the prior N(0, 1) in units of the label deviation, and is integrated
        # out.
        own, cross = A[n, n] + 1.0, A[:n, n]
        conditional = np.ascontiguousarray(A[:n, :n] - np.outer(cross, cross) / own)
        shifted = h[:n] - cross * h[n] / own
        mean, deviation = posterior_moments(conditional, shifted, _MOST_SIGNAL, sweeps=self.sweeps)
        level = float(h[n] - cross @ mean) / own
        return unit * mean, unit * deviation, self.label_deviation * level

    def errors(self, b: np.ndarray, support: np.ndarray) -> np.ndarray:
        """Standard errors of coefficients on a support, for least squares from the release.

        They are the roots of the diagonal of G_A⁻¹(τ²G₂ + Σ)_A G_A⁻¹ over the support A and the
        intercept: labels that vary around their predictions, and privacy noise. That the support
        was chosen from the same release is not accounted for. Columns that are combinations of
        others have none.

        Parameters
        ----------
        b : ndarray
            The release, as for `posterior`.
        support : ndarray of bool, shape (N,)
            Columns that are not zero.

        Returns
        -------
        ndarray of shape (N,)
            NaN outside of the support.
        """
        G, G2, noise = self.standardised
        units = self.moments.units
        middle = self._unexplained(b / units / self.label_deviation) * G2 + noise
        taken = np.append(support, np.ones(int(self.moments.intercept), dtype=bool))
        try:
            errors = sandwich_errors(taken.astype(np.float64), G, middle)
        except np.linalg.LinAlgError:
            errors = np.full(taken.size, np.nan)
        return (self.label_deviation / units * errors)[: support.size]

    @cached_property
    def standardised(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """G, G₂ and Σ in units of standardised columns and of the deviation of the labels."""
        units = self.moments.units
        both = np.outer(units, units)
        noise = self.noise / both / self.label_deviation**2
        return self.moments.G / both, self.moments.G2 / both, noise

    def _unexplained(self, b: np.ndarray) -> float:
        """Variance of the labels around their predictions, from the marginal likelihood of b."""
        known = self.__dict__.get("_last")  # the guess asks first, then its standard errors
        if known is None or not np.array_equal(known[0], b):
            likelihoods = np.array(
                [
                    -np.inf if factor is None else -0.5 * float(b @ cho_solve(factor, b)) - log_root
                    for factor, log_root in (self._kept if self.many else self._factors())
                ]
            )
            weights = np.exp(likelihoods - np.max(likelihoods))
            known = b, float(weights @ (1.0 - _EXPLAINED * _SIGNALS) / weights.sum())
            self.__dict__["_last"] = known
        return known[1]

    @cached_property
    def _kept(self) -> list[tuple[tuple[np.ndarray, bool] | None, float]]:
        return list(self._factors())

    def _factors(self) -> Iterator[tuple[tuple[np.ndarray, bool] | None, float]]:
        """Cholesky factors of the covariance of b for each size of the signal.

        Under x ~ N(0, D), D = g/n on the columns and 1 on the intercept, and labels of variance t
        around Fx, it is GDG + tG₂ + Σ. None stands for a matrix that is singular.
        """
        G, G2, noise = self.standardised
        n = self.moments.scale.size
        with threads_for(float(n) ** 3):
            GG, rest = G[:, :n] @ G[:, :n].T / n, G[:, n:] @ G[:, n:].T + noise
        for part in _SIGNALS:
            K = _MOST_SIGNAL * part * GG + (1.0 - _EXPLAINED * part) * G2 + rest
            K[np.diag_indices_from(K)] += _JITTER * np.trace(K) / K.shape[0]
            try:
                with threads_for(K.shape[0] ** 3 / 3):
                    factor = cho_factor(K, lower=True)
            except LinAlgError:
                yield None, 0.0
            else:
                yield factor, float(np.sum(np.log(np.diag(factor[0]))))


def joint_noise(columns: np.ndarray, sigma_sum: float) -> np.ndarray:
    """Covariance of the noise on the columns and, as last entry, on the label sum.

    >>> joint_noise(np.array([[4.0]]), 3.0)
    array([[4., 0.],
           [0., 9.]])
    """
    whole = np.zeros((columns.shape[0] + 1, columns.shape[0] + 1))
    whole[:-1, :-1], whole[-1, -1] = columns, sigma_sum**2
    return whole


@dataclass(frozen=True, eq=False)
class Posterior:
    """The best guess of the coefficients from a release.

    Attributes
    ----------
    coef : ndarray
        Posterior mean of the coefficients of the live columns.
    deviation : ndarray
        Their posterior standard deviations, which include the privacy noise.
    mean_label : float
        Posterior mean of the label at the means of the columns; zero without an intercept.
    """

    coef: np.ndarray = field(repr=False)
    deviation: np.ndarray = field(repr=False)
    mean_label: float


def posterior(
    release: Release, rows: Covariates, weights: np.ndarray | None, label_deviation: float
) -> Posterior:
    """Mean of the coefficients given a release, whose noise has a known law.

    With rows z_μ = (f_μ, 1) and their weights w_μ the release is B ~ N(Gx, τ²G₂ + Σ), where
    G = Σ w_μ z_μz_μᵀ, G₂ = Σ w_μ² z_μz_μᵀ, and τ² is the variance of a label around its
    prediction. In units of standardised columns the coefficients have the prior of
    `posterior_moments`, a mixture of a wide and a narrow normal law whose sizes and proportions
    follow from the release. So the guess adapts to few large coefficients as well as to many small
    ones. The size of τ² comes from a Gaussian prior, averaged by its marginal likelihood.

    Parameters
    ----------
    release : Release
        The release.
    rows : Covariates
        The covariates that it was made from.
    weights : ndarray of shape (M,) or None
        Weights of the rows in the release.
    label_deviation : float
        Standard deviation to expect of the labels, in the unit of the release; a value that does
        not come from them.
    """
    law, b = release_law(release, rows, weights, label_deviation)
    return posterior_of(release, rows, law, b)


def release_law(
    release: Release, rows: Covariates, weights: np.ndarray | None, label_deviation: float
) -> tuple[ReleaseLaw, np.ndarray]:
    """The law of a release, and the release itself with the label sum as last entry."""
    b, noise = _joint(release, rows, weights)
    return ReleaseLaw(RowMoments.of(rows, weights), noise, label_deviation), b


def posterior_of(release: Release, rows: Covariates, law: ReleaseLaw, b: np.ndarray) -> Posterior:
    """What `posterior` returns, for a law that is known."""
    mean, deviation, level = law.posterior(b)
    centre = release.centre + release.level if rows.centred else 0.0
    return Posterior(mean, deviation, centre + level)


def posterior_mean(
    gram: np.ndarray, b: np.ndarray, noise: np.ndarray, n_rows: int, label_deviation: float
) -> np.ndarray:
    """The same for centred columns that are given by their Gram matrix alone."""
    moments = RowMoments(gram, gram, np.sqrt(np.diag(gram) / n_rows), intercept=False)
    return ReleaseLaw(moments, noise, label_deviation).posterior(b)[0]


def uncentred(release: Release, rows: Covariates, weights: np.ndarray | None) -> np.ndarray:
    """Return b with what the centre of the label bounds took out of it, if there is no intercept.

    The centre is public, and so is its product with the rows.
    """
    if release.centre == 0.0 or rows.centred:
        return release.b
    return release.b + release.centre * rows.rmatvec(
        np.ones(rows.shape[0]) if weights is None else weights
    )


def _joint(
    release: Release, rows: Covariates, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The release of the live columns, the label sum as last entry, and its covariance."""
    noise = release.covariance.restricted(np.flatnonzero(rows.live)).matrix()
    b = uncentred(release, rows, weights)[rows.live]
    if release.label_sum is None or release.sigma_sum is None:
        return b, noise
    return np.append(b, release.label_sum), joint_noise(noise, release.sigma_sum)
