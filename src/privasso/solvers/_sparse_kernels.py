"""Coordinate descent and conjugate gradients on sparse columns, compiled.

The columns are f_i − r·mean_i: f_i sparse (CSC), r one number per row, and mean_i one per column,
zero unless the matrix is centred. The fitted values Fx are held in two parts, the sparse part
w = Σ x_i f_i and the number τ = Σ x_i mean_i, so that no column is ever made dense. `along` is
r·f_i for each column, `total` is r·r, and state = (τ, r·w).
"""

from __future__ import annotations

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True, fastmath=_FAST)
def product(data, rows, starts, i, w):  # pragma: no cover
    """f_i·w."""
    s = 0.0
    for k in range(starts[i], starts[i + 1]):
        s += data[k] * w[rows[k]]
    return s


@njit(nogil=True, cache=True)
def fit(data, rows, starts, mean, along, x, w, state):  # pragma: no cover
    """Fitted values of x from nothing."""
    w[:] = 0.0
    state[:] = 0.0
    for i in range(x.size):
        if x[i] != 0.0:
            for k in range(starts[i], starts[i + 1]):
                w[rows[k]] += x[i] * data[k]
            state[0] += x[i] * mean[i]
            state[1] += x[i] * along[i]


@njit(nogil=True, cache=True)
def gradient(data, rows, starts, mean, along, total, w, state, index, out):  # pragma: no cover
    """``out[k] = F_iᵀ(Fx)`` for the columns i = index[k]."""
    for k in range(index.size):
        i = index[k]
        s = product(data, rows, starts, i, w)
        out[k] = s - along[i] * state[0] - mean[i] * (state[1] - state[0] * total)


@njit(nogil=True, cache=True)
def sweep(
    data, rows, starts, mean, along, total, squares, b, lam, x, w, state, n_epochs, tol
):  # pragma: no cover
    """Cyclic coordinate descent in place; stops as `_newton.descend` does, or when it is done."""
    for epoch in range(n_epochs):
        moved = False
        flipped = False
        for i in range(x.size):
            if squares[i] <= 0.0:
                continue
            s = product(data, rows, starts, i, w)
            s -= along[i] * state[0] + mean[i] * (state[1] - state[0] * total)
            u = b[i] - s + squares[i] * x[i]
            new = 0.0
            if u > lam:
                new = (u - lam) / squares[i]
            elif u < -lam:
                new = (u + lam) / squares[i]
            d = new - x[i]
            if d != 0.0:
                flipped |= (new == 0.0) != (x[i] == 0.0)
                moved |= abs(d) * squares[i] > tol * lam
                x[i] = new
                for k in range(starts[i], starts[i + 1]):
                    w[rows[k]] += d * data[k]
                state[0] += d * mean[i]
                state[1] += d * along[i]
        if not moved or (epoch >= 1 and not flipped):
            break


@njit(nogil=True, cache=True)
def conjugate_gradients(
    data, rows, starts, mean, along, total, norms, active, rhs, w, n_steps, tol
):  # pragma: no cover
    """Roughly solve H p = rhs, H the Gram matrix of the active columns at unit norm.

    Returns p, pᵀHp and whether p is a direction without curvature, in which case p is that
    direction alone. w is a buffer.
    """
    n = active.size
    p = np.zeros(n)
    Hp = np.zeros(n)
    r = rhs.copy()
    d = r.copy()
    Hd = np.empty(n)
    state = np.zeros(2)
    x = np.zeros(norms.size)
    gamma = np.dot(r, r)
    start = gamma
    for _ in range(n_steps):
        if gamma <= tol * tol * start:
            break
        for k in range(n):
            x[active[k]] = d[k] / norms[active[k]]
        fit(data, rows, starts, mean, along, x, w, state)
        gradient(data, rows, starts, mean, along, total, w, state, active, Hd)
        for k in range(n):
            Hd[k] /= norms[active[k]]
        curvature = np.dot(d, Hd)
        if curvature <= 1e-13 * np.dot(d, d):
            return d, max(curvature, 0.0), True
        step = gamma / curvature
        p += step * d
        Hp += step * Hd
        r -= step * Hd
        previous = gamma
        gamma = np.dot(r, r)
        d = r + (gamma / previous) * d
    return p, np.dot(p, Hp), False
