"""The batch gives what the single solves give, and says which of its problems failed."""

import numpy as np
import pytest
import scipy.sparse as sp

import privasso as pv
from oracles import check_ray, kkt
from privasso._clock import Clock
from privasso.operators import as_operator
from privasso.problem import Problem
from privasso.solvers import _batch, _batch_steps, _growth, _tuned, solve_problems
from privasso.solvers._iteration import movement
from privasso.solvers._proximal import _null_directions
from privasso.solvers._shared import LinearTerms


def batch(law, n_rhs=12, n=300, sigma=0.05, seed=0):
    s = pv.Model(0.5, scales=law).sample(n, rng=seed)
    return s.F, s.y, pv.Gram(sigma).draw(s.v, rng=seed + 1, size=n_rhs)


@pytest.mark.parametrize("law", [pv.Uniform(), pv.LogNormal()], ids=["v1", "v2"])
@pytest.mark.parametrize("lam", [0.1, 0.3])
def test_agrees_with_single_solves(law, lam):
    F, y, etas = batch(law)
    many = pv.solve_many(F, y, lam, etas)
    for k in range(etas.shape[1]):
        assert kkt(F, y, lam, etas[:, k], many.x[:, k]) <= 1e-8
        single = pv.solve(F, y, lam, etas[:, k], method="cd")
        np.testing.assert_allclose(many.x[:, k], single.x, atol=1e-8)
    assert (many.kkt <= 1e-8).all()
    assert (many.gap <= 1e-8).all()


@pytest.mark.parametrize("law", [pv.Uniform(), pv.LogNormal()], ids=["v1", "v2"])
def test_without_newton_steps_the_minimisers_are_the_same(law, monkeypatch):
    F, y, etas = batch(law)
    many = pv.solve_many(F, y, 0.1, etas)
    monkeypatch.setattr(_tuned, "NEWTON_ROUNDS", 0)
    others = pv.solve_many(F, y, 0.1, etas)
    assert (others.kkt <= 1e-8).all()
    np.testing.assert_allclose(many.x, others.x, atol=1e-8)


def test_a_newton_step_solves_on_the_support():
    """One step from the right signs solves the normal equations, to single precision."""
    rng = np.random.default_rng(5)
    F = rng.standard_normal((60, 40)) * rng.uniform(0.1, 10.0, size=40)
    support, lam = np.arange(0, 40, 3), 0.2
    signs = rng.choice([-1.0, 1.0], size=support.size)
    A, target = F[:, support], rng.uniform(1.0, 2.0, size=support.size) * signs
    b = F.T @ (A @ target)
    b[support] += lam * signs
    X = np.zeros((1, 40))
    X[0, support] = target * rng.uniform(0.99, 1.01, size=support.size)
    C, paths = b - X @ F.T @ F, np.zeros((1, 40))
    C[0, np.setdiff1d(np.arange(40), support)] = 0.0  # no other column asks to join
    steps = _batch_steps.NewtonSteps(as_operator(F), np.linalg.norm(F, axis=0), np.arange(40))
    steps.take(X, C, np.array([lam]), np.array([0]), paths, Clock())
    np.testing.assert_allclose(X[0, support], target, rtol=1e-6)
    expected = np.linalg.solve(A.T @ A, lam * signs)
    np.testing.assert_allclose(paths[0, support], expected, rtol=1e-4, atol=1e-7)


def test_a_time_limit_ends_batched_amp():
    F, y, etas = batch(pv.Uniform())
    many = pv.solve_many(F, y, 0.1, etas, time_limit=1e-9, throw=False)
    assert set(many.status) == {pv.Status.TIME_LIMIT}


def test_path_in_lambda():
    F, y, _ = batch(pv.Uniform())
    lams = np.geomspace(0.02, 3.0, 9)
    many = pv.solve_many(F, y, lams)
    for lam, x in zip(lams, many.x.T, strict=True):
        assert kkt(F, y, lam, np.zeros(F.shape[1]), x) <= 1e-8
    assert np.count_nonzero(many.x[:, 0]) > np.count_nonzero(many.x[:, -1])


def test_lambda_and_noise_together():
    F, y, etas = batch(pv.LogNormal(), n_rhs=3)
    lams = np.array([0.2, 0.4, 0.8])
    many = pv.solve_many(F, y, lams, etas)
    for k, lam in enumerate(lams):
        assert kkt(F, y, lam, etas[:, k], many.x[:, k]) <= 1e-8


def test_unbounded_problems_do_not_spoil_the_others():
    F, y, etas = batch(pv.Uniform(), n_rhs=4)
    etas[:, 2] *= 40
    many = pv.solve_many(F, y, 0.1, etas, throw=False)
    assert [status.name for status in many.status] == [
        "CONVERGED",
        "CONVERGED",
        "UNBOUNDED",
        "CONVERGED",
    ]
    check_ray(F, 0.1, etas[:, 2], many.rays[2])
    with pytest.raises(pv.UnboundedError, match="1 of 4 problems failed; problem 2"):
        pv.solve_many(F, y, 0.1, etas)


def test_correlated_columns():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((100, 150)) + 3.0
    y = rng.standard_normal(100)
    etas = 0.1 * rng.standard_normal((150, 3))
    many = pv.solve_many(F, y, 5.0, etas)
    for k in range(3):
        assert kkt(F, y, 5.0, etas[:, k], many.x[:, k]) <= 1e-8


@pytest.mark.parametrize("storage", [np.ascontiguousarray, np.asfortranarray, sp.csr_array])
def test_right_hand_sides_take_the_place_of_labels(storage):
    F, y, etas = batch(pv.LogNormal(), n_rhs=5)
    F = storage(F)
    etas[:, 3] *= 40
    B = (F.T @ y)[:, None] - etas
    lams = np.geomspace(0.1, 0.4, 5)
    many = solve_problems(F, np.asfortranarray(B), lams, throw=False)
    labelled = pv.solve_many(F, y, lams, etas, throw=False)
    assert (many.status == labelled.status).all()
    assert many.status[3] is pv.Status.UNBOUNDED
    np.testing.assert_allclose(many.x, labelled.x, atol=1e-8)
    for k in (0, 1, 2, 4):
        assert kkt(F, y, lams[k], etas[:, k], many.x[:, k]) <= 2e-8
        single = pv.solvers.solve_problem(pv.problem.Problem(F, B[:, k], lams[k]), method="cd")
        np.testing.assert_allclose(many.x[:, k], single.x, atol=1e-7)
    with pytest.raises(pv.UnboundedError, match="1 of 5 problems failed; problem 3"):
        solve_problems(F, B, lams)


def test_one_right_hand_side_serves_every_lambda():
    F, y, _ = batch(pv.Uniform())
    lams = np.geomspace(0.02, 3.0, 9)
    path = solve_problems(F, (F.T @ y)[:, None], lams)
    np.testing.assert_allclose(path.x, pv.solve_many(F, y, lams).x, atol=1e-8)


@pytest.mark.parametrize(
    ("B", "lam", "message"),
    [
        (np.ones(4), 0.1, "B must have shape"),
        (np.ones((5, 3)), 0.1, "B must have shape"),
        (np.full((4, 3), np.nan), 0.1, "B contains NaN"),
        (np.ones((4, 3)), [0.1, 0.2], "lam has 2 entries for 3 problems"),
        (np.ones((4, 3)), 0.0, "lam must be a positive number"),
        (np.ones((4, 1)), [], "lam"),
    ],
)
def test_bad_right_hand_sides(B, lam, message):
    with pytest.raises(ValueError, match=message):
        solve_problems(np.ones((6, 4)), B, lam)


@pytest.mark.parametrize(
    ("lam", "etas"),
    [
        ([0.1, -0.1], None),
        ([[0.1]], None),
        ([0.1, 0.2], np.zeros((4, 3))),
        (0.1, np.zeros((5, 3))),
        (0.1, np.full((4, 3), np.nan)),
        (0.1, np.zeros(4)),
    ],
)
def test_bad_input(lam, etas):
    with pytest.raises(ValueError, match=r"lam|etas"):
        pv.solve_many(np.ones((6, 4)), np.ones(6), lam, etas)


def correlated(m, n, seed=0):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((m, n))
    for j in range(1, n):
        F[:, j] = 0.95 * F[:, j - 1] + 0.3 * F[:, j]
    y = F[:, ::20].sum(axis=1) + rng.standard_normal(m)
    return F, y, float(np.abs(F.T @ y).max()), rng


@pytest.mark.parametrize("shape", [(80, 200), (300, 100)])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_a_path_on_correlated_columns_is_that_of_single_solves(shape, storage):
    A, y, largest, rng = correlated(*shape)
    F = A
    if storage == "sparse":
        A = np.where(rng.uniform(size=A.shape) < 0.1, A, 0.0)
        F, largest = sp.csc_array(A), float(np.abs(A.T @ y).max())
    lams = largest * np.array([0.3, 1.1, 1e-3, 0.01, 0.8])
    path = pv.solve_path(F, y, lams)
    assert {status.name for status in path.status} == {"CONVERGED"}
    close = 1e-6 * float(np.linalg.norm(y))
    for k, lam in enumerate(lams):
        c = A.T @ (y - A @ path.x[:, k])
        assert np.abs(c).max() <= lam * (1 + 1e-7)
        active = path.x[:, k] != 0
        assert np.abs(c - lam * np.sign(path.x[:, k]))[active].max(initial=0.0) <= 1e-7 * lam
        single = pv.solve(F, y, float(lam)).x
        np.testing.assert_allclose(A @ path.x[:, k], A @ single, atol=close)


def test_noise_vectors_on_correlated_columns_cost_less_than_a_loop():
    F, y, largest, rng = correlated(150, 400)
    etas = 0.01 * largest * rng.standard_normal((400, 12))
    lam = 0.1 * largest
    many = pv.solve_many(F, y, lam, etas)
    singles = [pv.solve(F, y, lam, eta) for eta in etas.T]
    for k, single in enumerate(singles):
        np.testing.assert_allclose(many.x[:, k], single.x, atol=1e-6 * np.abs(single.x).max())
    assert many.n_iter.sum() < 0.7 * sum(single.n_iter for single in singles)


def test_a_problem_after_an_unbounded_one_is_solved():
    F, y, largest, rng = correlated(60, 150)
    etas = np.stack([100 * largest * rng.standard_normal(150), np.zeros(150)], axis=1)
    many = pv.solve_many(F, y, 0.1 * largest, etas, throw=False)
    assert [status.name for status in many.status] == ["UNBOUNDED", "CONVERGED"]
    single = pv.solve(F, y, 0.1 * largest).x
    np.testing.assert_allclose(many.x[:, 1], single, atol=1e-6 * np.abs(single).max())


def test_diverged_columns_of_batched_amp_are_not_promising():
    from privasso.solvers._batch_steps import batch_amp

    F, y, largest, _ = correlated(300, 100)
    squares = np.sum(F**2, axis=0)
    start = batch_amp(
        F.astype(np.float32), squares, (F.T @ y)[None], np.array([0.01 * largest]), Clock()
    )
    assert not start.promising[0]


def test_correlated_columns_share_one_gram_matrix():
    """Many noise vectors on correlated columns: those of single solves, checked on F itself."""
    rng = np.random.default_rng(12)
    F = rng.standard_normal((150, 100))
    for j in range(1, 100):
        F[:, j] = 0.9 * F[:, j - 1] + np.sqrt(0.19) * F[:, j]
    y = F[:, :5].sum(axis=1) + rng.standard_normal(150)
    lam = 0.05 * float(np.abs(F.T @ y).max())
    etas = 0.2 * lam * rng.standard_normal((100, 12))
    many = pv.solve_many(F, y, lam, etas)
    for k in range(12):
        assert kkt(F, y, lam, etas[:, k], many.x[:, k]) <= 1e-8
        one = pv.solve(F, y, lam, etas[:, k])
        np.testing.assert_allclose(many.x[:, k], one.x, atol=1e-7 * np.abs(one.x).max())
    assert np.isfinite(many.gap).all()


def test_a_path_with_noise_ends_in_rays_below_the_critical_lambda():
    rng = np.random.default_rng(13)
    F = rng.standard_normal((60, 90)) + 2 * rng.standard_normal((60, 1))
    y, eta = rng.standard_normal(60), rng.standard_normal(90)
    critical = pv.critical_lambda(F, eta)
    lams = critical * np.array([4.0, 2.0, 1.2, 0.8, 0.5, 0.2])
    path = pv.solve_path(F, y, lams, eta, throw=False)
    assert [status.name for status in path.status] == ["CONVERGED"] * 3 + ["UNBOUNDED"] * 3
    for k in range(3):
        assert kkt(F, y, lams[k], eta, path.x[:, k]) <= 1e-8
        check_ray(F, lams[k + 3], eta, path.rays[k + 3])


def small_lambda(m, n, n_rhs, part=30, noise=0.1, seed=0):
    """Independent columns, and a λ at which four fifths of the largest support are used."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((m, n)) / np.sqrt(m)
    y = F[:, :50] @ rng.standard_normal(50) + 0.3 * rng.standard_normal(m)
    lam = float(np.abs(F.T @ y).max()) / part
    return F, y, lam, noise * lam * rng.standard_normal((n, n_rhs))


@pytest.mark.parametrize("n_rhs", [8, 40])
def test_supports_of_most_rows_are_found_by_the_batch_alone(n_rhs, monkeypatch):
    """A batch that leaves columns out too early would leave its problems to single solves."""
    F, y, lam, etas = small_lambda(200, 400, n_rhs)
    alone = []
    solve_problem = _batch.solve_problem

    def counted(problem, **options):
        alone.append(problem)
        return solve_problem(problem, **options)

    monkeypatch.setattr(_batch, "solve_problem", counted)
    many = pv.solve_many(F, y, lam, etas)
    assert np.count_nonzero(many.x, axis=0).min() > 120
    assert len(alone) <= n_rhs // 8
    for k in range(0, n_rhs, 5):
        assert kkt(F, y, lam, etas[:, k], many.x[:, k]) <= 1e-8


def test_a_few_problems_are_solved_one_by_one(monkeypatch):
    F, y, lam, etas = small_lambda(100, 150, 3, part=5)
    monkeypatch.setattr(_batch, "batch_amp", None)
    many = pv.solve_many(F, y, lam, etas)
    for k in range(3):
        assert kkt(F, y, lam, etas[:, k], many.x[:, k]) <= 1e-8


def test_a_poor_start_is_not_used(monkeypatch):
    """The noise of the second problem has nothing in common with that of the first."""
    F, y, largest, rng = correlated(80, 200)
    lam = 0.02 * largest
    etas = F.T @ (0.5 * rng.standard_normal((80, 2)) * np.std(y))
    begun = []
    begin = _growth.Growth.begin

    def counted(self, problem):
        begun.append(problem)
        begin(self, problem)

    monkeypatch.setattr(_growth.Growth, "begin", counted)
    many = pv.solve_many(F, y, lam, etas)
    assert len(begun) == 2
    assert (many.kkt <= 1e-8).all()
    begun.clear()
    close = np.stack([etas[:, 0], etas[:, 0] + 1e-3 * (etas[:, 1] - etas[:, 0])], axis=1)
    assert (pv.solve_many(F, y, lam, close).kkt <= 1e-8).all()
    assert len(begun) == 1


def test_linear_terms_and_steps_by_hand():
    terms = LinearTerms(np.array([[1.0, 2.0]]), b=np.array([5.0]))
    assert terms.one(1).tolist() == [3.0]
    assert terms.some(np.array([0, 1])).tolist() == [[4.0], [3.0]]
    assert not terms.equal
    problem = Problem(np.eye(2), np.ones(2), 1.0)
    assert movement(problem, np.array([4.0, 1.0]), np.array([4.0, 0.0])) == (0.25, 1.0)


def test_directions_that_equal_columns_leave_open():
    found = _null_directions(np.ones((3, 3)), np.array([0, 2]))
    assert found[0] == pytest.approx(-found[1])


def test_arrays_begin_where_registers_are_filled_from():
    assert _batch_steps.aligned(3).ctypes.data % 64 == 0
