"""A normal vector in a box: Hamiltonian dynamics without error of integration.

For u ~ N(0, Σ) the flow u(t) = u cos t + w sin t with a velocity w ~ N(0, Σ) leaves the law
unchanged. Where an entry reaches a side of its box, the velocity is reflected in the metric of Σ⁻¹,

    w ← w − 2 (w_j/Σ_jj) Σ_:j,

which leaves its length and the truncated law unchanged (Pakman and Paninski, 2014). Every step is
accepted, and correlations between the entries do not slow it down: without sides, one quarter of a
period is an independent draw.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from privasso.theory._system import FloatArray

_QUARTER = 0.5 * math.pi
#: Reflections of one trajectory beyond which it ends early.
_REFLECTIONS = 1_000_000


@njit(cache=True, nogil=True, error_model="numpy")
def box_chain(
    covariance: FloatArray,
    low: FloatArray,
    high: FloatArray,
    start: FloatArray,
    velocities: FloatArray,
) -> tuple[FloatArray, bool]:
    """States after each of several quarter periods, one per row, and whether all are complete.

    `covariance` is Σ, `low` and `high` the box, and `start` a point in it. If that has the
    truncated law, so has every state. `velocities` are draws from N(0, Σ), one row per trajectory.
    """
    u = start.copy()
    states = np.empty_like(velocities)
    n = u.size
    for k in range(velocities.shape[0]):
        w = velocities[k].copy()
        left = _QUARTER
        reflections = 0
        while True:
            time, who = left, -1
            for j in range(n):
                size2 = u[j] * u[j] + w[j] * w[j]
                up = high[j] <= 0.0 or size2 > high[j] * high[j]
                down = low[j] >= 0.0 or size2 > low[j] * low[j]
                if size2 == 0.0 or not (up or down):
                    continue
                size, phase = math.sqrt(size2), math.atan2(w[j], u[j])
                # u_j(t) = size·cos(t − phase): each side is reached from inside once per period.
                if up:
                    t = phase - math.acos(min(1.0, max(-1.0, high[j] / size)))
                    t = t + 2.0 * math.pi if t < 0.0 else t
                    if t < time:
                        time, who = t, j
                if down:
                    t = phase + math.acos(min(1.0, max(-1.0, low[j] / size)))
                    t = t + 2.0 * math.pi if t < 0.0 else t
                    t = t - 2.0 * math.pi if t >= 2.0 * math.pi else t
                    if t < time:
                        time, who = t, j
            c, s = math.cos(time), math.sin(time)
            for j in range(n):
                before = u[j]
                u[j] = before * c + w[j] * s
                w[j] = w[j] * c - before * s
            if who < 0:
                break
            left -= time
            factor = 2.0 * w[who] / covariance[who, who]
            for j in range(n):
                w[j] -= factor * covariance[who, j]
            reflections += 1
            if reflections == _REFLECTIONS:
                return states, False
        states[k] = u
    return states, True
