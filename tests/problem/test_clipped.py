"""Certificates of clipped problems: bounds against exact rational minimisers."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from privasso.noise import Diagonal, Factored
from privasso.problem import (
    ClippedProblem,
    Huber,
    Logistic,
    as_ridge,
    certain_curvature,
    certify_clipped,
    sharpened,
    smallest_subgradient,
    undecided_columns,
)
from privasso.problem._ridge import DualNorm


def rational(a):
    return [[Fraction(float(v)) for v in row] for row in np.atleast_2d(a)]


def solve_exactly(A, b):
    """Gauss elimination on fractions."""
    n = len(b)
    rows = [[*A[i], b[i]] for i in range(n)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [a - factor * c for a, c in zip(rows[i], rows[k], strict=True)]
    return [rows[i][n] / rows[i][i] for i in range(n)]


class Exact:
    """A small Huber problem in rational arithmetic: its minimiser by its optimality conditions."""

    def __init__(self, F, y, lam, kappa, Q, eta, w, omega):
        self.F, self.Q = rational(F), rational(Q)
        self.y, self.eta = rational(y)[0], rational(eta)[0]
        self.w, self.kappa = rational(w)[0], Fraction(float(kappa))
        # λω as the product of the two numbers, which the certificate rounds
        self.t = [Fraction(float(lam)) * Fraction(float(o)) for o in omega]
        self.n = len(self.eta)

    def gradient(self, x):
        r = [yi - sum(a * b for a, b in zip(f, x, strict=True)) for f, yi in self.rows()]
        psi = [w * max(-self.kappa, min(self.kappa, ri)) for w, ri in zip(self.w, r, strict=True)]
        return [
            self.eta[i]
            + sum(self.Q[i][j] * x[j] for j in range(self.n))
            - sum(p * f[i] for p, f in zip(psi, self.F, strict=True))
            for i in range(self.n)
        ]

    def rows(self):
        return zip(self.F, self.y, strict=True)

    def objective(self, x):
        total = Fraction(0)
        for (f, yi), w in zip(self.rows(), self.w, strict=True):
            r = abs(yi - sum(a * b for a, b in zip(f, x, strict=True)))
            total += w * (r * r / 2 if r <= self.kappa else self.kappa * (r - self.kappa / 2))
        quadratic = sum(self.Q[i][j] * x[i] * x[j] for i, j in product(range(self.n), repeat=2))
        linear = sum(e * v for e, v in zip(self.eta, x, strict=True))
        return (
            total + quadratic / 2 + linear + sum(t * abs(v) for t, v in zip(self.t, x, strict=True))
        )

    def is_minimiser(self, x):
        return all(
            (g == -t * (1 if v > 0 else -1)) if v != 0 else abs(g) <= t
            for g, t, v in zip(self.gradient(x), self.t, x, strict=True)
        )

    def minimiser(self, near):
        """The minimiser with the pattern of the point given; None if it has another pattern."""
        x = [Fraction(float(v)) for v in near]
        r = [yi - sum(a * b for a, b in zip(f, x, strict=True)) for f, yi in self.rows()]
        A = [i for i in range(self.n) if x[i] != 0]
        if A:
            inner = [k for k, v in enumerate(r) if abs(v) <= self.kappa]
            outer = [k for k, v in enumerate(r) if abs(v) > self.kappa]
            H = [
                [
                    self.Q[i][j] + sum(self.w[k] * self.F[k][i] * self.F[k][j] for k in inner)
                    for j in A
                ]
                for i in A
            ]
            b = [
                sum(self.w[k] * self.F[k][i] * self.y[k] for k in inner)
                + sum(
                    self.w[k] * self.F[k][i] * (self.kappa if r[k] > 0 else -self.kappa)
                    for k in outer
                )
                - self.eta[i]
                - self.t[i] * (1 if x[i] > 0 else -1)
                for i in A
            ]
            for i, value in zip(A, solve_exactly(H, b), strict=True):
                x[i] = value
        return x if self.is_minimiser(x) else None

    def distance_squared(self, a, b):
        d = [Fraction(float(p)) - q for p, q in zip(a, b, strict=True)]
        return sum(self.Q[i][j] * d[i] * d[j] for i, j in product(range(self.n), repeat=2))


def small_problem(rng, *, full=False):
    """Data of at most 9 × 4 with scales over eight orders of magnitude, and both forms of it."""
    m, n = int(rng.integers(1, 10)), int(rng.integers(1, 5))
    scales = 10.0 ** rng.uniform(-4, 4, n)
    F = rng.standard_normal((m, n)) * scales
    y = 3 * rng.standard_normal(m) * 10.0 ** rng.uniform(-2, 2)
    lam, kappa = 10.0 ** rng.uniform(-2, 0.5), 10.0 ** rng.uniform(-2, 2)
    eta = rng.standard_normal(n) * scales
    w = rng.uniform(0, 2, m) * (rng.uniform(size=m) < 0.9)
    omega = scales * (rng.uniform(size=n) < 0.8)
    if full:
        B = rng.standard_normal((n, n)) * scales[:, None]
        Q = B @ B.T + np.diag(0.1 * scales**2)
        Q = (Q + Q.T) / 2
    else:
        Q = np.diag(10.0 ** rng.uniform(-3, 1) * scales**2)
    ridge = Q if full else np.diag(Q).copy()
    problem = ClippedProblem(
        F,
        y,
        lam,
        loss=Huber(kappa),
        ridge=ridge,
        eta=eta,
        weights=w,
        penalty_weights=omega,
    )
    return problem, Exact(F, y, lam, kappa, Q, eta, w, omega)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_bounds_cover_the_exact_distance_and_suboptimality(full, seed):
    from privasso.solvers import solve_clipped_problem

    rng = np.random.default_rng(seed)
    problem, exact = small_problem(rng, full=full)
    solution = solve_clipped_problem(problem)
    minimiser = exact.minimiser(solution.x)
    assert minimiser is not None
    best = exact.objective(minimiser)
    assert exact.distance_squared(solution.x, minimiser) <= Fraction(solution.distance) ** 2
    value = exact.objective([Fraction(float(v)) for v in solution.x])
    assert value - best <= Fraction(solution.gap)
    for size in (0.0, 1e-16, 1e-12, 1e-6, 1e-2, 1.0):
        x = solution.x * (1 + size * rng.standard_normal(solution.x.size))
        certificate = certify_clipped(problem, x)
        distance = exact.distance_squared(x, minimiser)
        assert distance <= Fraction(certificate.distance) ** 2
        assert exact.objective([Fraction(float(v)) for v in x]) - best <= Fraction(certificate.gap)
        # the bound is a few times the norm of the exact subgradient, not a guess
        if size == 1.0 and not full:
            assert certificate.distance <= 1e6 * float(distance) ** 0.5 or distance == 0


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-8, 1e-4, 1e-1])
@pytest.mark.parametrize("seed", range(4))
def test_sharper_bound_covers_the_exact_distance(seed, size):
    from privasso.solvers import solve_clipped_problem

    rng = np.random.default_rng(seed)
    m, n = 60, 4
    F, y = rng.standard_normal((m, n)), rng.standard_normal(m)
    F[0], y[0] = 1.0, 0.5  # with x near zero this row is close to the clipping
    problem = ClippedProblem(F, y, 5.0, loss=Huber(0.5), ridge=0.01)
    exact = Exact(F, y, 5.0, 0.5, 0.01 * np.eye(n), np.zeros(n), np.ones(m), np.ones(n))
    found = solve_clipped_problem(problem)
    minimiser = exact.minimiser(found.x)
    assert minimiser is not None
    x = found.x * (1 + size * rng.standard_normal(n))
    first = certify_clipped(problem, x)
    take = np.flatnonzero(undecided_columns(problem, x, first))
    assert all(minimiser[i] == 0 for i in set(range(n)) - set(take.tolist()))
    d = certain_curvature(problem, first)
    K = (F[:, take].T * d) @ F[:, take] + 0.01 * np.eye(take.size)
    sharp = sharpened(first, take, K, 1e-14 * np.diag(K))
    assert exact.distance_squared(x, minimiser) <= Fraction(sharp.distance) ** 2
    value = exact.objective([Fraction(float(v)) for v in x])
    assert value - exact.objective(minimiser) <= Fraction(sharp.gap)
    if take.size and size <= 1e-8:
        assert sharp.distance < 0.1 * first.distance
        # between x and the minimiser every row has at least the curvature that is certain
    end = np.array([float(v) for v in minimiser])
    for t in np.linspace(0, 1, 11):
        assert np.all(problem.curvature(F @ ((1 - t) * x + t * end)) >= d)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("loss", [Huber(0.5), Logistic()])
def test_what_is_called_certain_holds_up_to_the_minimiser(loss, full):
    from privasso.solvers import solve_clipped_problem

    rng = np.random.default_rng(0)
    m, n = 40, 6
    F = rng.standard_normal((m, n))
    F[:, 1] += F[:, 0]
    y = rng.integers(0, 2, m).astype(float)
    B = rng.standard_normal((n, n))
    Q = 200.0 * np.eye(n) + (20.0 * B @ B.T if full else 0.0)
    Q = (Q + Q.T) / 2
    ridge = Q if full else np.diag(Q).copy()
    decided, sure = 0, 0
    for lam in (1.0, 3.0, 5.0):
        problem = ClippedProblem(F, y, lam, loss=loss, ridge=ridge)
        end = solve_clipped_problem(problem).x
        for size in np.repeat([0.001, 0.01, 0.03, 0.1, 0.3], 40):
            x = end + size * rng.standard_normal(n) * (rng.uniform(size=n) < 0.5)
            x[rng.uniform(size=n) < 0.3] = 0.0
            first = certify_clipped(problem, x)
            undecided = undecided_columns(problem, x, first)
            assert not np.any(end[~undecided])
            decided += np.sum(~undecided)
            d = certain_curvature(problem, first)
            sure += np.count_nonzero(d)
            for t in np.linspace(0, 1, 11):
                assert np.all(problem.curvature(F @ ((1 - t) * x + t * end)) >= d)
    assert decided > 100  # the claims are not empty
    assert sure > 1000


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_residual_is_the_exact_subgradient_up_to_its_rounding(full, seed):
    rng = np.random.default_rng(100 + seed)
    problem, exact = small_problem(rng, full=full)
    x = rng.standard_normal(problem.shape[1]) / np.sqrt(problem.steepness)
    x[::2] *= rng.uniform(size=x[::2].size) < 0.5
    found = certify_clipped(problem, x)
    gradient = exact.gradient([Fraction(float(v)) for v in x])
    for i, g in enumerate(gradient):
        t = exact.t[i]
        if x[i] != 0:
            true = g + t * (1 if x[i] > 0 else -1)
        else:
            true = max(abs(g) - t, Fraction(0)) * (1 if g > 0 else -1)
        assert abs(true - Fraction(float(found.residual[i]))) <= Fraction(float(found.rounding[i]))
        scale = float(abs(g)) + float(t)
        assert found.rounding[i] <= 1e-14 * max(scale, abs(problem.eta[i])) + 1e-300


def conjugate(loss, y, theta):
    """ℓ*(−θ) = sup_u (−θu − ℓ(y, u)) at a θ that is a pull."""
    if isinstance(loss, Huber):
        return 0.5 * theta**2 - theta * y
    p = y - theta
    return p * np.log(p) + (1 - p) * np.log(1 - p)


def test_gap_is_the_difference_to_the_dual():
    rng = np.random.default_rng(0)
    for loss in (Huber(0.5), Logistic()):
        F = rng.standard_normal((30, 4))
        y = rng.integers(0, 2, 30).astype(float)
        Q = np.diag(rng.uniform(0.5, 2, 4))
        problem = ClippedProblem(F, y, 0.7, loss=loss, ridge=np.diag(Q).copy(), eta=np.ones(4))
        x = rng.standard_normal(4) * [1, 0, 1, 1]
        theta = loss.pull(y, F @ x)
        s = F.T @ theta - 1.0
        inner = np.where(x != 0, 0.7 * np.sign(x), np.clip(s, -0.7, 0.7))
        rest = s - inner
        dual = -conjugate(loss, y, theta).sum() - 0.5 * rest @ np.linalg.solve(Q, rest)
        gap = certify_clipped(problem, x).gap
        assert gap == pytest.approx(problem.objective(x) - dual, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_full_dual_norm_covers_every_vector_in_the_box(seed):
    rng = np.random.default_rng(seed)
    n = 5
    B = rng.standard_normal((n, n))
    Q = B @ B.T + 1e-6 * np.eye(n)
    Q = (Q + Q.T) / 2
    v, e = rng.standard_normal(n), rng.uniform(0, 0.1, n)
    bound = as_ridge(Q, n).dual_norm(v, e)
    worst = max(
        np.sqrt(a @ np.linalg.solve(Q, a))
        for signs in product((-1, 1), repeat=n)
        for a in [v + e * np.array(signs)]
    )
    assert worst <= bound * (1 + 1e-9)
    alone = as_ridge(Q, n).dual_norm(v, np.zeros(n))
    assert alone == pytest.approx(np.sqrt(v @ np.linalg.solve(Q, v)), rel=1e-6)


def test_forms_of_the_ridge_agree():
    rng = np.random.default_rng(0)
    d = rng.uniform(0.5, 2, 4)
    root = rng.standard_normal((4, 4))
    v, none = rng.standard_normal(4), np.zeros(4)
    for a, b in [
        (d, np.diag(d)),
        (Diagonal(d), d),
        (Factored(root), (lambda M: (M + M.T) / 2)(root @ root.T)),
        (2.0, np.full(4, 2.0)),
    ]:
        one, two = as_ridge(a, 4), as_ridge(b, 4)
        assert one.dual_norm(v, none) == pytest.approx(two.dual_norm(v, none), rel=1e-9)
        np.testing.assert_allclose(one.matvec(v), two.matvec(v))
        take = np.array([2, 0])
        np.testing.assert_allclose(one.submatrix(take), two.submatrix(take))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ridge": 0.0}, "ridge must be positive"),
        ({"ridge": np.ones(3)}, "ridge has 3 columns"),
        ({"ridge": np.array([[1.0, 0.5], [0.4, 1.0]])}, "symmetric"),
        ({"ridge": np.array([[1.0, 0.0], [0.0, -1.0]])}, "positive definite"),
        ({"weights": [-1.0, 1.0, 1.0]}, "weights must be zero or positive"),
        ({"penalty_weights": [1.0, -1.0]}, "penalty_weights must be zero or positive"),
        ({"lam": -1.0}, "lam must be zero or positive"),
        ({"eta": [1.0]}, "eta must have shape"),
        ({"F": [[1.0, np.nan]] * 3}, "NaN"),
    ],
)
def test_bad_input_is_refused(change, message):
    arguments = {"F": np.ones((3, 2)), "y": np.ones(3), "lam": 1.0, "ridge": 1.0} | change
    with pytest.raises(ValueError, match=message):
        ClippedProblem(loss=Huber(1.0), **arguments)


def test_singular_full_ridge_is_refused_by_the_certificate():
    ones = np.ones((3, 3))
    problem = ClippedProblem(np.eye(3), np.ones(3), 1.0, loss=Huber(1.0), ridge=ones)
    with pytest.raises(ValueError, match="ridge"):
        certify_clipped(problem, np.zeros(3))


def test_repr_shows_no_data():
    problem = ClippedProblem(np.eye(2), [1234.5, 1.0], 0.5, loss=Huber(1.0), ridge=1.0)
    assert repr(problem) == "ClippedProblem(shape=(2, 2), lam=0.5, loss=Huber(kappa=1.0))"


def test_dual_norms_and_subgradients_by_hand():
    Q, none = np.array([[2.0, 1.0], [1.0, 2.0]]), np.zeros(2)
    v = np.array([1.0, -1.0])
    for found in (DualNorm(Q)(v, none), as_ridge(Q, 2).dual_norm(v, none)):
        assert np.sqrt(2.0) <= found == pytest.approx(np.sqrt(2.0))
    diagonal = as_ridge(np.array([4.0, 1.0]), 2)
    assert 1.0 <= diagonal.dual_norm(np.array([2.0, 0.0]), none) == pytest.approx(1.0)
    found = smallest_subgradient(np.array([-1.0, 1.5, 0.2]), np.array([2.0, 0.0, 0.0]), np.ones(3))
    assert found.tolist() == [0.0, 0.5, 0.0]
