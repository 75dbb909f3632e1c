"""One label at either of its bounds: the exact likelihood ratio of a choice of columns and a fit.

What is attacked is the whole transcript: noisy means for the centre of the labels, the columns in
the order in which they were chosen, the release of the fit, and the mean that corrects its
intercept. Each of these has a law that is known given what came before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

from privasso.attacks._labels import labels_at_bounds, minimiser_ratio, release_vector
from privasso.attacks._pair import Pair, Score, World
from privasso.blocks import RowBlocks
from privasso.fit import LabelTranscript, ScreenedLabelPlan
from privasso.privacy import LabelDP, Peeled
from privasso.queries import Replaying

FloatArray = NDArray[np.float64]

#: Most numbers of projected columns that are kept, and most plans of fits.
_KEPT, _PLANS = 1 << 26, 1024
#: Fewest rows for which a table is made up.
_FEWEST = 8
#: Noisy means before the choice.
_MEANS = 3


def screened_label_pairs(
    plan: ScreenedLabelPlan, y: FloatArray, records: dict[int, str]
) -> list[Pair]:
    """A pair for each record: its label at the upper and at the lower bound."""
    law, pairs = _Law(plan), []
    for k, name in records.items():
        labels = labels_at_bounds(y, k, plan.screened.fit.y_bounds)
        into, out = (World(partial(law.draw, one)) for one in labels)
        fits = lru_cache(_PLANS)(partial(law.fit_ratio, *labels))
        pairs.append(Pair(name, into, out, partial(law.ratio, *labels, fits)))
    return pairs


def labels_made_for_choice(plan: ScreenedLabelPlan) -> list[Pair]:
    """A label that decides between columns that are otherwise tied, in a table of the same size."""
    if plan.X.shape[0] < _FEWEST:
        return []
    m, n = plan.X.shape
    X, y = table_for_label_choice(m, n, plan.screened.fit.y_bounds)
    name = "a label made up to decide which columns are chosen"
    return screened_label_pairs(replace(plan, X=X, components=None), y, {0: name})


def table_for_label_choice(
    n_rows: int, n_columns: int, y_bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Covariates and labels; the first label decides which columns are chosen.

    Rows come in twos: the same signs with labels at opposite bounds, which cancel wherever the
    centre of the labels is. In four rows they do not: two that are positive in all columns, of
    which one has the label in question, and two that are positive in every second column. With the
    upper label the associations of these columns are 4 and of the others 0, with the lower one all
    are 2, so that differences move by twice the sensitivity. Columns are orthogonal, if the table
    has enough rows, so that this does not change when some were chosen.
    """
    low, high = y_bounds
    half = 1 << (n_rows // 2).bit_length() - 1
    if half > n_columns:
        # Row 0 is positive, row 1 has alternating signs; column 0, which is positive, is left out.
        signs = hadamard(half).astype(np.float64)[:, -n_columns:]
    else:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (half, n_columns))
        signs[0], signs[1] = 1.0, np.where(np.arange(n_columns) % 2 == 0, 1.0, -1.0)
    X, y = np.zeros((n_rows, n_columns)), np.full(n_rows, 0.5 * low + 0.5 * high)
    X[:half], X[half : 2 * half] = signs, signs
    y[:half], y[half : 2 * half] = high, low
    y[[half, half + 1]] = high
    return X, y


class _Law:
    """The mechanism on given covariates: transcripts as vectors, and ratios of their densities."""

    def __init__(self, plan: ScreenedLabelPlan) -> None:
        self.plan = replace(plan, seeded=True)
        m, n = plan.X.shape
        self.fit_of = lru_cache(_PLANS)(self.plan.fit_of)
        self._peeled = lru_cache(max(_KEPT // max(m * n, 1), 1))(self._peel)

    def draw(self, y: FloatArray, count: int, rng: np.random.Generator | None) -> FloatArray:
        """Transcripts of the mechanism itself, each as one vector."""
        plan = replace(self.plan, seeded=rng is not None)
        return np.array([self._vector(plan.transcript(y, rng, self.fit_of)) for _ in range(count)])

    def _vector(self, made: LabelTranscript) -> FloatArray:
        """Means, columns, coefficients, intercept, correction, and the release of the fit."""
        release = release_vector(self.fit_of(tuple(made.columns.tolist())), made.release)
        # Columns that are constant are not released.
        release = np.pad(release, (0, self.plan.n_fitted + 1 - release.size))
        parts = (made.means, made.order, made.few.coef, [made.few.intercept, made.level], release)
        return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])

    def ratio(
        self,
        one: FloatArray,
        two: FloatArray,
        fits: Callable[[tuple[int, ...]], Score],
        releases: FloatArray,
    ) -> FloatArray:
        """Log ratio of the densities for the two vectors of labels.

        `fits` returns the score of the fit of given columns.
        """
        count, level = self.plan.screened.screening.count, self.plan.screened.level
        end = count + self.plan.n_fitted
        means, rest = releases[:, :_MEANS], releases[:, _MEANS:]
        orders, coefs = rest[:, :count].astype(np.int64), rest[:, count:end]
        intercepts, levels = rest[:, end], rest[:, end + 1]
        seen = level.observed(levels / level.width, one.size)
        found = np.empty(len(releases))
        for k, order in enumerate(orders):
            columns = np.sort(order)
            release = rest[k : k + 1, end + 2 :]
            total = float(fits(tuple(columns.tolist()))(release)[0])
            for y, sign in ((one, 1.0), (two, -1.0)):
                total += sign * self._choice(y, means[k], order)
                if self.plan.options.fit_intercept:
                    fitted = self.plan.fitted_columns(columns.tolist()) @ coefs[k] + intercepts[k]
                    residuals = (y - fitted) / level.width
                    mean = float(np.mean(np.clip(residuals, -1.0, 1.0)))
                    total -= sign * 0.5 * ((seen[k] - mean) / level.noise(y.size)) ** 2
            found[k] = total
        return found

    def _choice(self, y: FloatArray, means: FloatArray, order: NDArray[np.int64]) -> float:
        """Log density of the means and of the choices, up to what does not depend on labels."""
        screening, rows = self.plan.screened.screening, RowBlocks.of_arrays(y[:, None][:, :0], y)
        ask = Replaying([np.array([mean * y.size]) for mean in means.tolist()], y.size)
        centre = screening.centre(ask)
        total = sum(
            float(query.log_likelihoods(rows, [answer])[0]) for query, answer in ask.transcript
        )
        for j in range(order.size):
            query = screening.choice(self._peeled(tuple(order[:j].tolist())), centre)
            total += float(query.log_likelihoods(rows, [order[j : j + 1]])[0])
        return total

    def _peel(self, order: tuple[int, ...]) -> Peeled:
        """Columns after those of the order were chosen."""
        if not order:
            return self.plan.peeled()
        peeled = self._peeled(order[:-1]).copy()
        peeled.take(order[-1])
        return peeled

    def fit_ratio(self, one: FloatArray, two: FloatArray, columns: tuple[int, ...]) -> Score:
        """Log ratio of the release of the fit of some columns."""
        plan = self.fit_of(columns)
        privacy = plan.options.privacy
        assert isinstance(privacy, LabelDP)
        size = int(plan.rows.live.sum()) + plan.rows.centred
        found = minimiser_ratio(plan, privacy, one, two)
        return lambda releases: found(releases[:, :size])
