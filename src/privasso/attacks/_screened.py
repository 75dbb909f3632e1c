"""One record emptied: the exact likelihood ratio of a choice of columns and the fits after it.

What is attacked is the whole transcript: noisy means for the centre of the labels, the columns of
each round, the coefficients of each fit, and the mean that corrects the last intercept. Each of
these has a law that is known given what came before, so that the logarithms of the ratios add up.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from privasso.attacks._pair import Pair, World
from privasso.attacks._records import record_log_densities
from privasso.privacy import (
    CentreSteps,
    PerturbedObjective,
    ScreenedObjective,
    Transcript,
    noise_scale,
)
from privasso.queries import bit_source
from privasso.theory import log_set_probability

FloatArray = NDArray[np.float64]


def screened_pairs(
    objective: ScreenedObjective,
    lam: float,
    X: FloatArray,
    y: FloatArray,
    records: dict[int, str],
) -> list[Pair]:
    """A pair for each record: all data, and all data with this record emptied."""
    law = _Law(objective, lam, X)
    world, pairs = World(partial(law.draw, y)), []
    for k, name in records.items():
        fewer = y.copy()
        fewer[k] = np.nan
        score = partial(law.ratio, y, fewer)
        pairs.append(Pair(name, world, World(partial(law.draw, fewer)), score))
    return pairs


def made_for_choice(objective: ScreenedObjective, lam: float, n_rows: int) -> list[Pair]:
    """A record that decides between columns that are otherwise nearly tied."""
    if n_rows < 2:
        return []
    name = "a record made up to decide which columns are chosen"
    return screened_pairs(objective, lam, *table_for_choice(objective, n_rows), {0: name})


def table_for_choice(objective: ScreenedObjective, n_rows: int) -> tuple[FloatArray, FloatArray]:
    """A table whose first record decides which columns are chosen.

    It has the largest entries in all columns and the largest label. Another record has the same
    entries in every second column and the smallest label; all others are in the middle. With both,
    the associations of these columns cancel and those of the rest have the size of one record;
    without the first it is the other way round. So it moves the difference of two associations by
    twice the sensitivity, in every choice of every round, and it pulls each fit with full force.
    """
    screening = objective.screening
    bounds, origin, (low, high) = screening.bounds, screening.origin, screening.y_bounds
    middle = np.clip(origin, bounds[:, 0], bounds[:, 1])
    upper = bounds[:, 1] - origin >= origin - bounds[:, 0]
    far = np.where(upper, bounds[:, 1], bounds[:, 0])
    centre = 0.5 * low + 0.5 * high if screening.centred else np.clip(0.0, low, high)
    rows, labels = np.tile(middle, (n_rows, 1)), np.full(n_rows, centre)
    rows[0], labels[0] = far, high
    rows[1, ::2], labels[1] = far[::2], low
    return rows, labels


class _Law:
    """The mechanism on given covariates: transcripts as vectors, and their densities."""

    def __init__(self, objective: ScreenedObjective, lam: float, X: FloatArray) -> None:
        self.objective, self.lam, self.X = objective, lam, X

    def draw(self, y: FloatArray, count: int, rng: np.random.Generator | None) -> FloatArray:
        """Transcripts of the mechanism itself, each as one vector."""
        bits = bit_source(rng)
        made = (self.objective.transcript(self.X, y, self.lam, bits) for _ in range(count))
        return np.array([_vector(one) for one in made])

    def ratio(self, one: FloatArray, two: FloatArray, releases: FloatArray) -> FloatArray:
        """Log ratio of the densities for labels with and without the record."""
        level, found = self.objective.level, []
        seen = np.zeros(len(releases))
        if level is not None:
            # What was added to the intercept tells the noisy mean that it came from.
            seen = level.observed(releases[:, -1] / level.width, one.size)
        for values, mean in zip(releases, seen.tolist(), strict=True):
            transcript = self.read(values)
            densities = (self.density(y, transcript, mean) for y in (one, two))
            found.append(next(densities) - next(densities))
        return np.array(found)

    def read(self, values: FloatArray) -> Transcript:
        """The transcript of a vector."""
        objective, rest = self.objective, list(values)

        def take(count: int) -> FloatArray:
            part, rest[:count] = np.array(rest[:count]), []
            return part

        means = take(3 if objective.screening.centred else 0)
        counts = [objective.screening.count, *(one.choices.count for one in objective.rounds)]
        sets = tuple(take(count).astype(np.int64) for count in counts)
        fits = tuple((take(size), float(take(1)[0])) for size in np.cumsum(counts).tolist())
        return Transcript(tuple(means.tolist()), sets, fits, float(take(1)[0]))

    def density(self, y: FloatArray, transcript: Transcript, seen: float) -> float:
        """Log density, up to what does not depend on the labels.

        `seen` is the noisy mean of the last residuals, as a part of the range of the labels.
        """
        objective, screening = self.objective, self.objective.screening
        clipped, centre, total = np.clip(y, *screening.y_bounds), 0.0, 0.0
        if screening.centred:
            steps = CentreSteps(screening.y_bounds, screening.radius, screening.mu, False)
            for mean in transcript.means:
                total += steps.log_density(mean, clipped)
                steps.move(mean)
            centre = steps.centre
        scores = screening.associations(self.X, clipped, centre, screening.radius)
        total += log_set_probability(scores, noise_scale(screening.choices), transcript.sets[0])
        chosen = transcript.sets[0]
        for k, one in enumerate(objective.rounds):
            few, table = objective.restricted(self.X, chosen, one.table)
            total += self._fit(table, few, y, transcript.fits[k])
            residuals = objective.residuals(few, y, *transcript.fits[k])
            radius = one.clip * (screening.y_bounds[1] - screening.y_bounds[0])
            scores = screening.associations(self.X, residuals, 0.0, radius)
            left = np.setdiff1d(np.arange(scores.size), chosen)
            places = np.searchsorted(left, transcript.sets[k + 1])
            total += log_set_probability(scores[left], noise_scale(one.choices), places)
            chosen = np.sort(np.append(chosen, transcript.sets[k + 1]))
        few, table = objective.restricted(self.X, chosen, objective.table)
        total += self._fit(table, few, y, transcript.fits[-1])
        if objective.level is None:
            return total
        level, m = objective.level, y.size
        residuals = objective.residuals(few, y, *transcript.fits[-1]) / level.width
        mean = float(np.nansum(np.clip(residuals, -1.0, 1.0))) / m
        return total - 0.5 * ((seen - mean) / level.noise(m)) ** 2

    def _fit(
        self,
        table: PerturbedObjective,
        few: FloatArray,
        y: FloatArray,
        fit: tuple[FloatArray, float],
    ) -> float:
        u = table.from_units(*fit)
        # A coefficient that was not published is exactly zero in either unit.
        return float(record_log_densities(table, self.lam, few, y, u[None, :])[0])


def _vector(transcript: Transcript) -> FloatArray:
    fits = [part for coef, intercept in transcript.fits for part in (coef, [intercept])]
    return np.concatenate([transcript.means, *transcript.sets, *fits, [transcript.level]])
