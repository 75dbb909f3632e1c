"""One pass over rows for the clipped-residual LASSO, with sums that do not depend on their order.

Entries of rows are multiples of 2⁻ˢ of at most 2²⁰ of them, labels are multiples of 2⁻³², and x is
a fixed-point number that is cut into digits of some twenty bits. The product of rows and one digit
is then a matrix product in which floating point makes no error, the residual an integer, and so is
everything that is summed over rows:

    Σ_μ ψ_μ f_μ,   the changes of Σ_μ d_μ f_μ f_μᵀ,

ψ the residual clipped at κ and d = 1 where it was not clipped. Sums of integers are the same in any
order, on any number of machines, and for any cut of the data into blocks. The last sum only steers
the solver, so its entries are rounded to sixteen bits first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from privasso._blas import one_thread
from privasso.problem import Clipped
from privasso.solvers._exact_steps import FixedPoint, digit_width
from privasso.solvers._long_sums import row_sums

#: Bits of an entry, and of one in the matrix of second derivatives.
ENTRY_BITS, CURVED_BITS = 20, 16
#: Labels are multiples of 2⁻³².
LABEL_BITS = 32
#: Bits of a digit of ψ. With at most 2¹² rows, sums of products with entries stay below 2⁵³.
_PULL_DIGIT, _MOST_ROWS = 21, 1 << 12
#: Entries of rows that are worked on at a time: they stay in cache.
_BLOCK = 1 << 18
#: Rows that are gathered before their products are summed.
_GATHER = 1 << 12
#: A sum is kept in two parts, so that no number of blocks overflows.
_HALF = 32
#: Words of 32 bits of a long integer: far more than one needs.
_LIMBS = 64

Rows = tuple[np.ndarray, np.ndarray]
Sums = dict[str, np.ndarray]
#: Rows and labels on their grids of the records from one place of a chunk to another.
Prepare = Callable[[np.ndarray, np.ndarray, int, int], Rows]


def entry_grid(largest: float) -> int:
    """The s for entries of at most that size."""
    return ENTRY_BITS - math.ceil(math.log2(largest))


@dataclass(frozen=True, eq=False)
class PassSetting:
    """The numbers of a problem that are the same in every pass.

    - `n_columns`: N.
    - `grid`: s: entries are multiples of 2⁻ˢ.
    - `unit`: q: ψ is computed in multiples of 2^−q.
    - `loss`: ℓ.
    - `kappa`, `offset`: those of the loss in that unit, at most 2⁶¹, which are integers.
    """

    n_columns: int
    grid: int
    unit: int
    loss: Clipped
    kappa: int
    offset: int

    @staticmethod
    def of(n_columns: int, grid: int, loss: Clipped) -> PassSetting:
        """Return the setting for rows of this length and entries on this grid."""
        unit = 61 - math.ceil(math.log2(loss.kappa))
        kappa, offset = (int(math.ldexp(one, unit)) for one in (loss.kappa, loss.offset))
        return PassSetting(n_columns, grid, unit, loss, kappa, offset)


@dataclass(frozen=True, eq=False)
class PassState:
    """Where a pass computes its sums; all of it is as public as x.

    - `before`: the point at which the second derivatives are known; None where every row counts.
    - `fresh`: sum the second derivatives of all rows, whatever their residuals.
    - `long`: sum in longer integers, see `row_sums`, and the objective and two matrices besides.
    """

    x: FixedPoint
    before: FixedPoint | None = None
    fresh: bool = False
    long: bool = False


@dataclass(frozen=True, eq=False)
class ExactPass:
    """Sums over the rows of one part of the data, as a function that can be sent to it.

    `prepare`: turns records of a chunk, each by itself, into rows and labels on grids.
    """

    setting: PassSetting
    prepare: Prepare | None = field(default=None)

    def __call__(self, chunks: Iterable[Rows], state: PassState) -> Sums:
        """Return the sums over these chunks."""
        if state.long:
            return _long_sums(self.setting, self.prepare, chunks, state.x)
        return pass_sums(self.setting, self.prepare, chunks, state)


def pass_sums(
    setting: PassSetting,
    prepare: Prepare | None,
    chunks: Iterable[Rows],
    state: PassState,
) -> Sums:
    """The sums at the point of the state; see the top of this file."""
    n, width = setting.n_columns, digit_width(setting.n_columns)
    points = [_Point(setting, x, width) for x in (state.x, state.before) if x is not None]
    pull, n_free = np.zeros((3, n, 2), dtype=np.int64), np.zeros(1, dtype=np.int64)
    gathered = _Products(n, setting.grid)
    step = max(1, min(_MOST_ROWS, _BLOCK // n))
    # Products with few columns are as fast on one thread; several blocks run side by side instead.
    with one_thread():
        for X, y in chunks:
            for start in range(0, len(y), step):
                stop = min(start + step, len(y))
                G, labels = _prepared(prepare, X, y, start, stop)
                (psi, free), *earlier = _clipped(points, G, labels)
                pull += _halves(_times_digits(G, psi, setting.grid))
                n_free += np.count_nonzero(free)
                if state.fresh:
                    gathered.add(G, 1)
                    continue
                was = earlier[0][1] if earlier else np.ones_like(free)
                gathered.add(G[free & ~was], 1)
                gathered.add(G[was & ~free], -1)
    return {"pull": pull, "free": n_free, **gathered.sums()}


def _prepared(prepare: Prepare | None, X: np.ndarray, y: np.ndarray, start: int, stop: int) -> Rows:
    return (X[start:stop], y[start:stop]) if prepare is None else prepare(X, y, start, stop)


def _long_sums(
    setting: PassSetting, prepare: Prepare | None, chunks: Iterable[Rows], x: FixedPoint
) -> Sums:
    """The sums of `row_sums`, in digits, and Σ h f fᵀ for two curvatures h of the rows."""
    n, grid, loss = setting.n_columns, setting.grid, setting.loss
    pull, value = [0] * n, 0
    matrices = {name: _Products(n, grid) for name in ("below", "above")}
    with one_thread():
        for X, y in chunks:
            for start in range(0, len(y), _MOST_ROWS):
                stop = min(start + _MOST_ROWS, len(y))
                G, labels = _prepared(prepare, X, y, start, stop)
                found = row_sums(G, labels, None, loss, x, grid)
                pull = [a + k for a, k in zip(pull, found.pull, strict=True)]
                value += found.value
                matrices["below"].add(G[found.curvature > 0.0], 1)
                matrices["above"].add(G * np.sqrt(found.above)[:, None], 1)
    found = {"pull": _limbs(pull), "value": _limbs([value])}
    nothing = np.zeros((n, n), dtype=np.int64)
    return found | {name: one.sums().get("curved", nothing) for name, one in matrices.items()}


def _limbs(numbers: list[int]) -> np.ndarray:
    """Long integers as sums of words of 32 bits, which can be added up for many blocks."""
    mask, words = (1 << _HALF) - 1, []
    for _ in range(_LIMBS):
        words.append([k & mask for k in numbers])
        numbers = [k >> _HALF for k in numbers]
    return np.array([*words, numbers], dtype=np.int64)


def whole_numbers(limbs: np.ndarray) -> list[int]:
    """Long integers from the words of some blocks, added up."""
    return [sum(k << (_HALF * i) for i, k in enumerate(one)) for one in limbs.T.tolist()]


def pulled(pull: np.ndarray) -> list[int]:
    """Σψf as integers, in multiples of 2^−(q+s), from the sums of a pass."""
    total = [0] * pull.shape[1]
    for k, digit in enumerate(pull.tolist()):
        for i, (low, high) in enumerate(digit):
            total[i] += (low + (high << _HALF)) << (_PULL_DIGIT * k)
    return total


class _Point:
    """A point x as digits, ready for products with rows."""

    def __init__(self, setting: PassSetting, x: FixedPoint, width: int) -> None:
        self.setting = setting
        digits = x.digits(width)
        self.digits = np.array(digits).reshape(-1, setting.n_columns).T
        units = [setting.grid + x.bits - width * k for k in range(len(digits))]
        self.shifts = np.array([setting.unit - unit for unit in units], dtype=np.int64)
        self.scales = np.array([math.ldexp(1.0, -unit) for unit in units])
        self.whole = math.ldexp(1.0, setting.grid)

    def clipped(self, fitted: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The pulls in multiples of 2^−q, and which residuals are not clipped."""
        s = self.setting
        psi, free = np.empty(len(labels), dtype=np.int64), np.empty(len(labels), dtype=np.bool_)
        lift, clip = s.unit - LABEL_BITS, s.loss.kappa
        _clip(fitted, labels, self.shifts, self.scales, lift, s.kappa, clip, psi, free)
        return psi + s.offset, free


def _clipped(
    points: list[_Point], G: np.ndarray, labels: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """What `_Point.clipped` returns for each point, with one product."""
    digits = np.concatenate([point.digits for point in points], axis=1)
    fitted = (G @ digits) * points[0].whole
    edges = np.cumsum([point.digits.shape[1] for point in points])[:-1]
    parts = np.split(fitted, edges, axis=1)
    return [point.clipped(part, labels) for point, part in zip(points, parts, strict=True)]


@njit(nogil=True, cache=True)
def _clip(fitted, labels, shifts, scales, lift, kappa, clip, psi, free):  # pragma: no cover
    """Residuals clipped at κ. Integers wrap around, but the result is right where it is used."""
    for i in range(labels.size):
        # The residual in floating point, with the errors of its sum added up apart: predictions may
        # be far larger than κ and still cancel.
        near = labels[i]
        lost = 0.0
        for k in range(shifts.size):
            term = -fitted[i, k] * scales[k]
            total = near + term
            part = total - near
            lost += (near - (total - part)) + (term - part)
            near = total
        near += lost
        if near > 2.0 * clip:
            psi[i], free[i] = kappa, False
            continue
        if near < -2.0 * clip:
            psi[i], free[i] = -kappa, False
            continue
        r = np.int64(labels[i] * 4294967296.0) << lift
        for k in range(shifts.size):
            v = np.int64(fitted[i, k])
            if shifts[k] >= 64:
                continue
            if shifts[k] >= 0:
                r -= v << shifts[k]
            elif shifts[k] > -63:
                r -= (v + (np.int64(1) << (-shifts[k] - 1))) >> -shifts[k]
        if r > kappa:
            psi[i], free[i] = kappa, False
        elif r < -kappa:
            psi[i], free[i] = -kappa, False
        else:
            psi[i], free[i] = r, True


def _times_digits(G: np.ndarray, psi: np.ndarray, grid: int) -> np.ndarray:
    """Gᵀ times each of the three digits of ψ: exact integers, of shape (3, N)."""
    base, half = 1 << _PULL_DIGIT, 1 << (_PULL_DIGIT - 1)
    digits = np.empty((len(psi), 3))
    for k in range(2):
        low = ((psi + half) & (base - 1)) - half
        digits[:, k] = low
        psi = (psi - low) >> _PULL_DIGIT
    digits[:, 2] = psi
    return ((G.T @ digits) * math.ldexp(1.0, grid)).astype(np.int64).T


def _halves(values: np.ndarray) -> np.ndarray:
    """Low and high part of each integer."""
    return np.stack([values & ((1 << _HALF) - 1), values >> _HALF], axis=-1)


class _Products:
    """Σ ± f fᵀ over rows that are gathered first, in entries of sixteen bits."""

    def __init__(self, n: int, grid: int) -> None:
        self._n, self._scale = n, math.ldexp(1.0, grid + CURVED_BITS - ENTRY_BITS)
        self._total: np.ndarray | None = None
        self._kept: dict[int, list[np.ndarray]] = {1: [], -1: []}
        self._count = {1: 0, -1: 0}

    def add(self, G: np.ndarray, sign: int) -> None:
        if not len(G):
            return
        self._kept[sign].append(np.rint(G * self._scale))
        self._count[sign] += len(G)
        if self._count[sign] >= _GATHER:
            self._flush(sign)

    def sums(self) -> Sums:
        for sign in (1, -1):
            self._flush(sign)
        return {} if self._total is None else {"curved": self._total}

    def _flush(self, sign: int) -> None:
        kept = self._kept[sign]
        if not kept:
            return
        rows = kept[0] if len(kept) == 1 else np.concatenate(kept)
        product = (rows.T @ rows).astype(np.int64)
        if self._total is None:
            self._total = np.zeros((self._n, self._n), dtype=np.int64)
        self._total += sign * product
        self._kept[sign], self._count[sign] = [], 0
