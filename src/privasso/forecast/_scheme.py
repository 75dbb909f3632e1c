"""Fits of labels on public covariates, simulated by the law of their releases."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import numpy as np

from privasso._blas import one_thread
from privasso.fit import MOST_COLUMNS, Plan, Released, ReleaseLaw, RowMoments, joint_noise
from privasso.forecast._population import Assumptions, Estimate, Population, Simulated, Truth
from privasso.noise import Noise, Shaped
from privasso.operators import Covariates
from privasso.planning import LabelRelease, calibrate, clipped_law, whitened_moments
from privasso.privacy import LabelDP
from privasso.programs import Calibration
from privasso.queries import ObjectiveNoise
from privasso.solvers import Status, solve_problems

#: Length of the Markov chain of a guess, against up to 1500 in a fit, to save time. Single fits
#: change by up to 0.1 in R², but their mean by about 0.01 only, in either direction.
_SWEEPS = 400
#: Eigenvalues below this part of the largest are rounding.
_RANK = 1e-12
_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class SimulatedFit:
    """Outcomes of fits on one table of covariates, whose questions have answers of a known law.

    A release of labels that follow a truth has the law N(G(x, a), σ²G₂ + Σ), up to the shape of
    the law of the residuals, which sums over many rows forget. That of a perturbed objective is in
    `_clipped`. So one simulated release costs no more than a product with a matrix over the
    columns, however many rows there are.
    """

    scheme: Scheme
    moments: RowMoments = field(repr=False)
    gram: np.ndarray = field(repr=False)
    n_rows: float
    weight: float

    def outcome(self, truth: Truth, rng: np.random.Generator) -> Estimate | None:
        """Draw labels and noise, and fit; None where the problem has no minimiser."""
        b = self._draw(truth, rng)
        lam, unit = self.scheme.lam, self.scheme.privacy.unit
        if not self.scheme.denoise:
            assert lam is not None
            return self._lasso(b, lam / unit)
        mean, _, level = self._law.posterior(b)
        guess = self.moments.scale * mean
        # With λ chosen from the release the LASSO keeps all but 1/400 of what the guess explains,
        # so that the guess stands for it.
        if lam is not None:
            root = self._root
            x, ok = _solution(root, root.T @ (root @ guess), lam / unit)
            return Estimate(x, level) if ok else None
        return Estimate(guess, level)

    def _draw(self, truth: Truth, rng: np.random.Generator) -> np.ndarray:
        moments = self.moments
        x = truth.coef / moments.scale
        x = np.append(x, truth.level) if moments.intercept else x
        objective = self.scheme.calibration.objective
        if objective is not None:
            return self._clipped(x, truth.residual_sd, objective, rng)
        labels, noise = rng.standard_normal(x.size), rng.standard_normal(x.size)
        spread = truth.residual_sd * (self._label_root @ labels) + self._noise_root @ noise
        return moments.G @ x + moments.units * spread

    def _clipped(
        self, x: np.ndarray, residual_sd: float, noise: ObjectiveNoise, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw b = (A + Λ)u for the minimiser u of a perturbed objective.

        In the eigenbasis of A = GᵀG, u = (qA + Λ)⁻¹(qAx + √E_g A^½ z + σz') in law; the mean slope
        q and the mean square E_g of the clipped residuals follow from the variance of a residual,
        which follows from u. See `design.clipped_settings`.
        """
        width, (a, root) = self._width, self._whitened
        truth, variance = root.T @ x / width, noise.sigma**2
        own = np.float64(self.weight * (residual_sd / width) ** 2)
        law = clipped_law(noise.kappa, a, truth**2, own, variance, noise.ridge, self.n_rows)
        (q, square), z = law, rng.standard_normal((2, a.size))
        u = q * a * truth + np.sqrt(square * a) * z[0] + np.sqrt(variance) * z[1]
        return width * (root @ ((a + noise.ridge) * (u / (q * a + noise.ridge))))

    @property
    def _width(self) -> float:
        return self.scheme.privacy.label_width / self.scheme.privacy.unit

    @cached_property
    def _whitened(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues of A, and its eigenvectors in the units of the release."""
        calibration, moments = self.scheme.calibration, self.moments
        assert calibration.objective is not None
        level, sigma_sum = calibration.objective.sigma * self._width, calibration.sigma_sum
        a, root = whitened_moments(moments.G, calibration.covariance, sigma_sum, moments.scale)
        return level**2 * a, root / level

    @cached_property
    def _noise(self) -> np.ndarray:
        calibration = self.scheme.calibration
        noise = calibration.covariance.matrix()
        return joint_noise(noise, calibration.sigma_sum) if self.moments.intercept else noise

    @cached_property
    def _law(self) -> ReleaseLaw:
        privacy = self.scheme.privacy
        assert privacy.label_deviation is not None
        deviation = privacy.label_deviation / privacy.unit
        return ReleaseLaw(self.moments, self._noise, deviation, many=True, sweeps=_SWEEPS)

    @cached_property
    def _label_root(self) -> np.ndarray:
        return _root(self.moments.G2 / np.outer(self.moments.units, self.moments.units))

    @cached_property
    def _noise_root(self) -> np.ndarray:
        return _root(self._noise / np.outer(self.moments.units, self.moments.units))

    @cached_property
    def _root(self) -> np.ndarray:
        """R with RᵀR = FᵀF of standardised columns."""
        return _root(self.gram / np.outer(self.moments.scale, self.moments.scale)).T

    def _lasso(self, b: np.ndarray, lam: float) -> Estimate | None:
        """The LASSO on the release itself, as `Postprocess` solves it, with its intercept."""
        G, scale = self.moments.G, self.moments.scale
        if not self.moments.intercept:
            x, ok = _solution(_root(G).T, b, lam)
            return Estimate(scale * x, 0.0) if ok else None
        # Centred by the weighted means, which differ from those of the rows by `shift`.
        total, shift = G[-1, -1], G[:-1, -1] / G[-1, -1]
        centred = G[:-1, :-1] - total * np.outer(shift, shift)
        x, ok = _solution(_root(centred).T, b[:-1] - b[-1] * shift, lam)
        return Estimate(scale * x, float(b[-1] / total - shift @ x)) if ok else None


def _solution(root: np.ndarray, b: np.ndarray, lam: float) -> tuple[np.ndarray, bool]:
    found = solve_problems(root, b[:, None], np.array([lam]), tol=_TOL, throw=False)
    return found.x[:, 0], found.status[0] is Status.CONVERGED


def _root(matrix: np.ndarray) -> np.ndarray:
    """S with SSᵀ equal to the matrix."""
    units = np.sqrt(np.diag(matrix))
    with one_thread():
        values, vectors = np.linalg.eigh(matrix / np.outer(units, units))
    kept = np.where(values > _RANK * values[-1], values, 0.0)
    return np.ascontiguousarray(units[:, None] * vectors * np.sqrt(kept))


#: Noise that is none, as a part of what there would be.
_NOTHING = 1e-6
#: Simulated fits for which there is time with few columns; see `affordable`.
_AT_ALL = 2500
#: Simulated fits for each line: a number that makes quantiles stable to a few hundredths, and the
#: smallest that still says something. With very many columns there is time for one line only.
_MOST, _ENOUGH, _FEWEST = 100, 24, 12
#: Tables of rows drawn with replacement that the fits share.
_TABLES = 12
#: With more rows per column than this, another table of the same law has practically the same
#: moments, and the rows themselves are used.
_MANY_ROWS = 50
#: Columns from which on it is of interest to leave half of them out.
_MANY_COLUMNS = 8
#: Largest mean of a column, relative to its root mean square, of a fit without intercept.
_LARGEST_MEAN = 0.5


@dataclass(frozen=True, eq=False)
class Scheme:
    """Covariates, noise and estimator of a fit under label differential privacy.

    Attributes
    ----------
    rows : Covariates
        Public covariates.
    privacy : LabelDP
        The guarantee.
    calibration : Calibration
        Its noise on these rows.
    noise : NoiseDesign, Shaped or None
        How the noise is spread, for other columns; None if unknown.
    lam : float or None
        λ, or None if it is chosen from the release.
    denoise : bool
        Whether the LASSO runs on the best guess.
    growth : float
        Rows of a simulated table, relative to those at hand.
    """

    rows: Covariates = field(repr=False)
    privacy: LabelDP
    calibration: Calibration = field(repr=False)
    noise: Noise | None
    lam: float | None = None
    denoise: bool = True
    growth: float = 1.0

    on = "these covariates"
    also = ""

    @classmethod
    def of_plan(cls, plan: Plan, lam: float | None = None) -> Scheme:
        """The scheme of a plan, which must be one for label differential privacy."""
        options = plan.options
        rows, calibration = plan.covariates, plan.calibration
        assert rows is not None
        assert calibration is not None
        # Scales that were given for these columns say nothing about others.
        noise = plan.noise if options.scales is None else None
        privacy = cast(LabelDP, options.privacy)
        return cls(rows, privacy, calibration, noise, lam, options.denoise)

    @classmethod
    def of_release(cls, released: Released, lam: float | None = None) -> Scheme:
        """The scheme that a release was made by."""
        made, rows = released.release, released.rows
        privacy = cast(LabelDP, released.privacy)
        covariance = made.covariance.restricted(np.flatnonzero(rows.live))
        calibration = LabelRelease(privacy).calibrated(
            covariance, made.sigma_sum or 0.0, made.mu, released.weights, rows.shape[0]
        )
        # Other designs may have been applied to given scales, which a release does not hold.
        noise = released.noise if isinstance(released.noise, Shaped) else None
        return cls(rows, privacy, calibration, noise, lam, released.options.denoise)

    @property
    def unavailable(self) -> str | None:
        """Why fits of this kind cannot be simulated, or None."""
        columns = int(self.rows.live.sum())
        if columns == 0:
            return "no column carries data, so there is nothing to predict"
        if columns > MOST_COLUMNS:
            return f"simulated fits would take too long for more than {MOST_COLUMNS} columns"
        if not self.rows.centred and not self._around_zero:
            return (
                "without an intercept, fits are simulated for columns with means near zero and "
                "label bounds around zero only"
            )
        if not self.denoise and self.lam is None:
            return "with denoise=False, fits are simulated for a given λ only; give λ as a number"
        return None

    @property
    def _around_zero(self) -> bool:
        """Whether labels of any coefficients would be within their bounds without an intercept."""
        rows, (low, high) = self.rows, self.privacy.y_bounds
        weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
        means = rows.rmatvec(weights)[rows.live] / np.sqrt(rows.total * rows.squares[rows.live])
        return low < 0.0 < high and bool(np.max(np.abs(means)) <= _LARGEST_MEAN)

    @property
    def budget(self) -> tuple[float, float]:
        """Of the privacy."""
        return self.privacy.epsilon, self.privacy.label_width

    @property
    def size(self) -> tuple[int, int]:
        """Of the rows at hand."""
        return self.rows.shape[0], int(self.rows.live.sum())

    def affordable(self, lines: int) -> tuple[int, bool]:
        """As many as there is time for: ten seconds, for this many columns on any computer."""
        n = self.size[1]
        time = int(_AT_ALL / (1.0 + (n / 100.0) ** 2 + (n / 250.0) ** 3))
        if time < _ENOUGH * lines:
            return min(_ENOUGH, max(_FEWEST, time)), False
        return min(_MOST, time // lines), True

    def with_epsilon(self, factor: float) -> Scheme:
        """The noise keeps its shape and changes its level.

        Examples
        --------
        >>> import privasso as pv
        >>> from privasso.fit import FitOptions, plan_fit
        >>> options = FitOptions(pv.LabelDP(1.0, 1e-6, (0, 1)))
        >>> scheme = Scheme.of_plan(plan_fit(np.random.default_rng(0).random((50, 3)), options))
        >>> scheme.with_epsilon(2.0).calibration.level < scheme.calibration.level
        True
        """
        epsilon = factor * self.privacy.epsilon
        mechanism, n_rows = LabelRelease(self.privacy), self.rows.shape[0]
        calibration = mechanism.rescaled(self.calibration, epsilon, n_rows)
        stronger = LabelRelease(replace(self.privacy, epsilon=epsilon))
        return replace(self, privacy=stronger.settled(calibration), calibration=calibration)

    def grown(self, factor: float) -> Scheme:
        """With the same noise."""
        return replace(self, growth=factor * self.growth)

    def free(self) -> Scheme:
        """Without noise, clipping and shrunk rows: the best guess from the table itself."""
        covariance = self.calibration.covariance.scaled(_NOTHING**2)
        sigma_sum = _NOTHING * self.calibration.sigma_sum
        return replace(self, calibration=Calibration(covariance, sigma_sum, None))

    def narrowed(self) -> Scheme:
        """With bounds of the labels half as wide, and noise in proportion; no label is outside."""
        low, high = self.privacy.y_bounds
        quarter, old = 0.25 * (high - low), self.calibration
        privacy = replace(self.privacy, y_bounds=(low + quarter, high - quarter))
        covariance, sigma_sum = old.covariance.scaled(0.25), 0.5 * old.sigma_sum
        calibration = replace(old, covariance=covariance, sigma_sum=sigma_sum)
        return replace(self, privacy=privacy, calibration=calibration)

    def half(self) -> Scheme | None:
        """With noise that is calibrated anew."""
        live = np.flatnonzero(self.rows.live)
        if live.size < _MANY_COLUMNS or self.noise is None:
            return None
        rows = self.rows.selected(live[::2])
        return replace(self, rows=rows, calibration=calibrate(rows, self.privacy, self.noise))

    def simulate(self, suppose: Assumptions, fits: int, seed: int = 0) -> Simulated:
        """The rows of a simulated table are drawn with replacement from those at hand.

        R² is that on the rows at hand, so that a model meets rows that it was not fitted to.
        """
        population, unit = Population(self.rows), self.privacy.unit
        suppose = replace(suppose, label_sd=suppose.label_sd / unit)
        half_width = 0.5 * self.privacy.label_width / unit
        m, n = self.size
        tables = 1 if m >= _MANY_ROWS * n else min(_TABLES, fits)
        found: list[float] = []
        for number, own in enumerate(np.random.default_rng(seed).spawn(tables)):
            for_rows, rng = own.spawn(2)
            counts = self.growth
            if tables > 1:
                counts = for_rows.multinomial(round(self.growth * m), np.full(m, 1.0 / m))
            table = self.table(counts)
            for _ in range(fits // tables + (number < fits % tables)):
                truth = population.draw(suppose, half_width, rng)
                estimate = table.outcome(truth, rng)
                found.append(-math.inf if estimate is None else population.r2(truth, estimate))
        return Simulated(np.array(found))

    def table(self, counts: np.ndarray | float) -> SimulatedFit:
        """Fits on a table in which each row occurs that often."""
        rows, own = self.rows, self.calibration.weights
        if isinstance(counts, np.ndarray):
            counts = counts.astype(np.float64)
            n_rows, total = float(counts.sum()), None if own is None else float(counts @ own)
            moments = RowMoments.of(rows, own, counts)
            gram = rows.moments(counts if rows.weights is None else counts * rows.weights)
        else:
            n_rows, total = counts * rows.shape[0], None if own is None else counts * own.sum()
            moments, gram = self._moments.times(counts), counts * rows.gram
        weight = 1.0 if total is None else float(total) / n_rows
        return SimulatedFit(self, moments, gram, n_rows, weight)

    @cached_property
    def _moments(self) -> RowMoments:
        return RowMoments.of(self.rows, self.calibration.weights)
