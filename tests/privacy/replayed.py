"""Everything that a fit releases, for two neighbouring tables, with the same outputs so far.

A fit runs on the first table, and all that it releases is noted: the integers before their noise,
the noise, and what came out. On the second table each release returns what came out of the first
one, so that the next query is the same one of both. What is then compared is exactly what the
guarantee is about: the distance of two queries at the same history, in units of their noise.
"""

import contextlib
import copy
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

import privasso.fit  # noqa: F401 - so that all modules below are there
from privasso.queries import NoisyChoice, NoisySum
from privasso.solvers import ExactPass, FixedPoint, PassState
from privasso.solvers._exact_pass import pulled


@dataclass
class Release:
    """One query: its name, and its answer before noise as a list of parts.

    Each part is a vector of integers or rationals with the largest distance that the noise hides.
    """

    name: str
    parts: list[tuple[list[Any], Fraction]]
    out: Any = field(repr=False)
    largest: bool = False


class Replayed:
    """The releases of one fit after the other; from the second fit on they return the first's."""

    def __init__(self, neighbours="records"):
        self.neighbours = neighbours
        self.first: list[Release] | None = None

    def run(self, fit):
        """Run a fit, and return its releases."""
        found = self._found = []
        with contextlib.ExitStack() as stack:
            for module, name, hook in self._hooks():
                stack.enter_context(mock.patch.object(module, name, hook))
            fit()
        if self.first is None:
            self.first = found
        return found

    def distances(self, first, second):
        """By name the largest squared distance of two queries, in units of what noise hides."""
        assert [one.name for one in first] == [two.name for two in second]
        found: dict[str, Fraction] = {}
        for one, two in zip(first, second, strict=True):
            total = Fraction(0)
            for (a, claim), (b, other) in zip(one.parts, two.parts, strict=True):
                assert claim == other
                moved = [Fraction(x) - Fraction(y) for x, y in zip(a, b, strict=True)]
                if one.largest:  # differences of two entries are what counts
                    total = max(total, ((max(moved) - min(moved)) / claim) ** 2)
                else:
                    total += sum(x * x for x in moved) / claim**2
            found[one.name] = max(found.get(one.name, total), total)
        return found

    def _hooks(self):
        rooms = "privasso.programs._", "privasso.queries._"
        for module in [m for name, m in sys.modules.items() if name.startswith(rooms)]:
            for name, wrap in (
                ("perturbed_minimiser", self._minimiser),
                ("shaped_minimiser", self._minimiser),
                ("exact_minimiser", self._exact),
            ):
                true = getattr(module, name, None)
                if true is not None:
                    yield module, name, wrap(true)
        yield NoisySum, "noisy", self._sum(NoisySum.noisy)
        yield NoisyChoice, "noisy", self._choice(NoisyChoice.noisy)

    def _note(self, name, parts, true, *, largest=False):
        """Add a release; its output is that of the first run, or a new one."""
        out = true() if self.first is None else self.first[len(self._found)].out
        self._found.append(Release(name, parts, out, largest))
        return copy.deepcopy(out)  # some are changed in place

    def _sum(self, true):
        def noisy(query, exact, count, bits):
            assert count == 1
            mu, deviations = Fraction(query.mu), query.deviations.tolist()
            parts = [
                ([k], Fraction(deviation) * mu)
                for k, deviation in zip(exact, deviations, strict=True)
            ]
            name = type(query.summand).__name__
            return [self._note(name, parts, lambda: true(query, exact, 1, bits)[0])]

        return noisy

    def _choice(self, true):
        def noisy(query, sizes, count, bits):
            assert count == 1
            claim = Fraction(query.scale) * Fraction(query.choices.epsilon_each)
            part = [int(k) for k in sizes], claim
            drawn = self._note(
                "choice", [part], lambda: true(query, sizes, 1, bits)[0], largest=True
            )
            return [drawn]

        return noisy

    def _minimiser(self, true):
        """Rows, of which none may be longer than the radius, or bend the objective too much."""

        def minimiser(G, y, lam, noise, bits, *, penalty_weights, weights=None, L=None):
            rows = [[Fraction(x) for x in row] for row in G.tolist()]
            rows = rows if L is None else [_solved(L, row) for row in rows]
            w = [Fraction(x) for x in (np.ones(len(G)) if weights is None else weights).tolist()]
            bend, longest = Fraction(noise.ridge) * Fraction(noise.t), Fraction(noise.radius)
            for one, row in zip(w, rows, strict=True):
                square = sum(x * x for x in row)
                assert one * one * square <= longest**2
                assert one * square <= (4 if noise.loss.slope == "logistic" else 1) * bend
            part = [one * x for one, row in zip(w, rows, strict=True) for x in row], longest
            options = {"penalty_weights": penalty_weights}
            options |= {} if weights is None else {"weights": weights}
            options |= {} if L is None else {"L": L}
            return self._note("rows", [part], lambda: true(G, y, lam, noise, bits, **options))

        return minimiser

    def _exact(self, true):
        """Sums of clipped residuals times rows at two points, as the solver gets them."""

        def minimiser(rows, view, setting, lam, noise, bits, penalty_weights):
            n, task = setting.n_columns, ExactPass(setting, view)
            pulls = {"labels": noise.loss.label_change, "replaced": 2.0 * noise.loss.largest_pull}
            pull = pulls.get(self.neighbours, noise.loss.largest_pull)
            claim = Fraction(pull) * Fraction(noise.radius)
            claim *= 2 ** (setting.unit + setting.grid)
            sums = []
            for point in ((0,) * n, (1 << 40,) * n, (-(1 << 39),) * n):
                found = rows.sum(task, PassState(FixedPoint(point, 40), fresh=not sums))
                sums.append(pulled(found["pull"]))
            given = rows, view, setting, lam, noise, bits, penalty_weights
            found = self._note("pulls", [(sums[0], claim)], lambda: true(*given))
            for k, one in enumerate(sums[1:]):
                self._note(f"pulls {k}", [(one, claim)], lambda: None)
            return found

        return minimiser


def _solved(L, row):
    """L⁻¹ times a row, in rationals."""
    found: list[Fraction] = []
    for i, line in enumerate(L.tolist()):
        done = sum((Fraction(line[j]) * found[j] for j in range(i)), Fraction(0))
        found.append((row[i] - done) / Fraction(line[i]))
    return found
