"""Labels over blocks of rows: the same release to the last bit, and the mechanism it should be."""

from typing import Any

import numpy as np
import pytest
from parts import mu_of_sums

import privasso as pv
from block_tables import N, local_cluster, table, write
from privasso.blocks import DataChangedError, RowBlocks, on_dask, open_files
from privasso.blocks._part import Local
from privasso.fit import AfterReleaseError, FitOptions, plan_for
from privasso.noise import Diagonal, Factored
from privasso.operators import BlockCovariates, Covariates
from privasso.planning import calibrate, release_mechanism
from privasso.programs._label_rows import scaled_labels
from privasso.queries import Answering, bit_source

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
MECHANISMS = ("release", "objective")


@pytest.fixture(autouse=True, params=["large", "small"], scope="module")
def size(request):
    """Covariates of large tables are known by sums over blocks; small ones are read into memory."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "large":
            patch.setattr("privasso.fit._rows.LARGEST", 0)
        yield request.param


def privacy(mechanism: Any) -> pv.LabelDP:
    return pv.LabelDP(1.0, 1e-6, (0.0, 1.0), mechanism=mechanism)


def published(mechanism, X, y=None, **options):
    """Everything that a fit publishes, as bytes."""
    est = pv.PrivateLasso(privacy=privacy(mechanism), random_state=3, **options).fit(X, y)
    release = est.release_
    return np.concatenate(
        [est.coef_, [est.intercept_, est.lam_, release.label_sum], release.b, release.sigma]
    ).tobytes()


@pytest.fixture(scope="module")
def expected(size):
    """From an array."""
    return {mechanism: published(mechanism, *table()) for mechanism in MECHANISMS}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_any_cut_order_precision_and_storage(expected, tmp_path, mechanism, size):
    X, y = table()
    wanted = expected[mechanism]
    order = np.random.default_rng(5).permutation(len(y))
    if size == "large":
        shuffled = RowBlocks.of_arrays(X[order], y[order], n_parts=17, jobs=3)
        assert published(mechanism, shuffled) == wanted
    assert published(mechanism, np.asfortranarray(X), y) == wanted
    single = RowBlocks.of_arrays(X.astype(np.float32), y, n_parts=64)
    assert published(mechanism, single) == wanted
    by_columns = RowBlocks.of_arrays(np.asfortranarray(X), y, n_parts=3)
    assert published(mechanism, by_columns) == wanted
    if size == "large":
        files = write(tmp_path, X, y)
        assert published(mechanism, files, "y") == wanted
        assert published(mechanism, open_files(files[::-1], "y", entries=500)) == wanted


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_dask_without_a_cluster(expected, mechanism):
    da = pytest.importorskip("dask.array")
    X, y = table()
    D, Y = da.from_array(X, chunks=(173, 4)), da.from_array(y, chunks=1000)
    assert published(mechanism, D, Y) == expected[mechanism]


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_workers_of_a_cluster(expected, tmp_path, n_workers, size):
    import distributed

    files = write(tmp_path, *table())
    cluster = local_cluster(n_workers)
    with cluster, distributed.Client(cluster) as client:
        for mechanism in MECHANISMS:
            blocks, wanted = on_dask(open_files(files, "y"), client), expected[mechanism]
            if size == "small":  # the rows are in another order in the files
                wanted = published(mechanism, open_files(files, "y"))
            assert published(mechanism, blocks) == wanted


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_one_label_changes_the_release(expected, mechanism):
    X, y = table()
    y[17] += 0.01
    assert published(mechanism, RowBlocks.of_arrays(X, y)) != expected[mechanism]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_same_noise_for_large_and_small_tables(mechanism):
    """The same design and the same bits of noise: what differs is the rounding of entries."""
    X, y = table()
    options: Any = {"noise": pv.PowerLaw(1.0, 0.5), "lam": 5.0, "random_state": 3}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privasso.fit._rows.LARGEST", X.size)
        whole = pv.PrivateLasso(privacy=privacy(mechanism), **options).fit(X, y)
        expected = whole.refit(X, lam=2.0).coef_.copy()
        whole.fit(X, y)
        patch.setattr("privasso.fit._rows.LARGEST", 0)
        parts = pv.PrivateLasso(privacy=privacy(mechanism), **options)
        parts.fit(RowBlocks.of_arrays(X, y, n_parts=5))
        np.testing.assert_allclose(parts.coef_, whole.coef_, atol=2e-5)
        assert parts.intercept_ == pytest.approx(whole.intercept_, abs=2e-5)
        np.testing.assert_allclose(parts.release_.sigma, whole.release_.sigma, rtol=1e-6)
        # From the kept release, with the covariates in blocks or in memory.
        again = parts.refit(RowBlocks.of_arrays(X, y), lam=2.0).coef_.copy()
        np.testing.assert_allclose(again, expected, atol=2e-5)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "options", [{"denoise": False}, {"fit_intercept": False}, {"denoise": False, "method": "cd"}]
)
def test_other_ways_to_solve_a_large_table(mechanism, options):
    """From sums over the blocks, and from the rows themselves."""
    X, y = table()
    options = {"noise": pv.PowerLaw(1.0, 0.5), "lam": 5.0, "random_state": 3, **options}
    found = []
    for largest in (0, X.size):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("privasso.fit._rows.LARGEST", largest)
            est = pv.PrivateLasso(privacy=privacy(mechanism), **options).fit(X, y)
            found.append([*est.coef_, est.intercept_])
    np.testing.assert_allclose(*found, atol=2e-5)


def test_moments_are_exact():
    """Means, norms and the Gram matrix against numpy, where columns differ by many orders."""
    rng = np.random.default_rng(0)
    X = rng.lognormal(0.0, 1.0, (3000, 5)) * 10.0 ** np.array([-30, -3, 0, 4, 30.0])
    X[:, 2] = 7.0
    for centre in (True, False):
        rows = BlockCovariates(RowBlocks.of_arrays(X, np.zeros(3000), n_parts=7), centre=centre)
        memory = Covariates(X, centre=centre)
        scale = np.sqrt(memory.squares)
        np.testing.assert_array_equal(rows.live, memory.live)
        live = memory.live
        np.testing.assert_allclose(rows.mean, memory.mean, rtol=1e-6)
        np.testing.assert_allclose(
            rows.gram / np.outer(scale[live], scale[live]),
            memory.gram / np.outer(scale[live], scale[live]),
            atol=1e-6,
        )


@pytest.mark.parametrize("full", [True, False])
def test_the_sensitivity_holds_for_the_integers_that_are_summed(full):
    """Change one label from bound to bound: no row moves the statistic by more than is claimed."""
    X, y = table(300)
    y = np.clip(y, 0.0, 1.0)
    source = RowBlocks.of_arrays(X, y, n_parts=3)
    rows = BlockCovariates(source, centre=True)
    kind = privacy("release")
    noise: Any = pv.Shaped(shrink=0.0) if full else pv.PowerLaw(1.0, 0.5)
    calibration = calibrate(rows, kind, noise)
    assert isinstance(calibration.covariance, Factored if full else Diagonal)
    (question,) = questions(kind, rows, calibration, source)
    largest, deviation = 0.0, question.deviations[0]
    sizes = calibration.covariance.row_norms(X - rows.mean)
    for i in (int(np.argmax(sizes)), 0, 50, 299):
        ends = []
        for label in (0.0, 1.0):
            z = y.copy()
            z[i] = label
            exact = question.exact(RowBlocks.of_arrays(X, z, n_parts=2))
            ends.append(np.array(exact, dtype=object))
        moved = float(np.sqrt(float(np.sum((ends[1] - ends[0]) ** 2)))) / deviation
        assert moved <= question.mu * (1 + 1e-12)
        largest = max(largest, moved)
    assert 0.999 * kind.mu < largest <= question.mu * (1 + 1e-12) <= kind.mu * (1 + 1e-9)
    # And the statistic is what it claims to be, against plain numbers.
    wanted = (X - rows.mean).T @ scaled_labels(y, (0.0, 1.0))
    white = kind.mu * np.ldexp([float(v) for v in question.exact(source)], -question.summand.unit)
    found = calibration.covariance.colour(white[:-1])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)


def questions(kind, rows, calibration, source):
    """What is asked in a fit."""
    ask = Answering(source, bit_source(np.random.default_rng(0)))
    release_mechanism(kind).program(rows, calibration)(ask, 0.0)
    found: list[Any] = [query for query, _ in ask.transcript]
    return found


def test_rows_of_the_objective_are_never_too_long():
    """Also for rows that were not there when the noise was calibrated."""
    X, y = table(500)
    source = RowBlocks.of_arrays(X, y)
    rows, kind = BlockCovariates(source, centre=True), privacy("objective")
    calibration = calibrate(rows, kind, pv.Shaped(shrink=0.0))
    view, radius = questions(kind, rows, calibration, source)[0].view, 1.0
    own, _ = view(X, y, 0, 500)
    lengths = np.linalg.norm(own, axis=1)
    assert 0.95 < lengths.max() <= radius  # the largest row sets the level
    far, labels = view(100.0 * X, y + 50.0, 0, 500)
    assert np.linalg.norm(far, axis=1).max() <= radius
    assert np.abs(labels).max() <= 0.5
    assert own.shape == (500, N + 1)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_many_correlated_columns(mechanism, size):
    """Whitening matrices of every scale are rounded, and no rounding becomes a weight of a row."""
    rng = np.random.default_rng(1)
    for seed in range(3):
        mixing = rng.standard_normal((30, 30)) * rng.lognormal(0.0, 2.0, 30)
        X = rng.standard_normal((400, 30)) @ mixing
        y = rng.random(400)
        est = pv.PrivateLasso(privacy=privacy(mechanism), lam=1.0, random_state=seed)
        est.fit(RowBlocks.of_arrays(X, y, n_parts=3))
        assert size == "small" or est.release_.weight_sum == 400.0
        assert abs(est.release_.mean_label - y.mean()) < 0.3


class Shifty(Local):
    """A label that changes at one of the passes, of those with sums or of all others."""

    def __init__(self, parts, at):
        super().__init__(parts, jobs=1)
        self.at, self.count = at, {"sum": 0, "chunks": 0}

    def sum(self, task, state, read):
        self._shift("sum")
        return super().sum(task, state, read)

    def chunks(self):
        self._shift("chunks")
        return super().chunks()

    def _shift(self, what):
        self.count[what] += 1
        if (what, self.count[what]) == self.at:
            part: Any = self.parts[1]
            y = part.y.copy()
            y[3] = 0.5 * y[3] + 0.1
            self.parts = (self.parts[0], type(part)(part.X, y), *self.parts[2:])


@pytest.mark.parametrize(
    ("mechanism", "at"), [("release", ("sum", 4)), ("objective", ("chunks", 1))]
)
def test_labels_that_change_between_passes_are_noticed(mechanism, at, size):
    if size == "small":  # the rows are read once, and a change after that does not matter
        at = "sum", 1
    blocks = RowBlocks.of_arrays(*table(), n_parts=4)
    assert isinstance(blocks.engine, Local)
    engine = Shifty(blocks.engine.parts, at)
    shifty = RowBlocks(blocks.shape, engine)
    ledger = pv.Ledger(5.0, 1e-5)
    est = pv.PrivateLasso(privacy=privacy(mechanism), ledger=ledger)
    if size == "small":
        assert len(est.fit(shifty).coef_) == N
        assert engine.count == {"sum": 0, "chunks": 1}
        return
    with pytest.raises((AfterReleaseError, DataChangedError), match="nothing was released"):
        est.fit(shifty)
    assert not hasattr(est, "coef_")
    assert not ledger.book.entries  # no noise was drawn


def test_refusals(size):
    X, y = table(200)
    ledger = pv.Ledger(5.0, 1e-5)
    blocks = RowBlocks.of_arrays(X, y)
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (RowBlocks.of_arrays(np.where(X[3, 2] == X, np.inf, X), y), {}, "finite|NaN or infinity"),
    ]
    if size == "large":
        cases.append((blocks, {"noise": pv.Shaped(shrink=0.3)}, "not shrunk"))
    for data, options, words in cases:
        with pytest.raises(ValueError, match=words):
            pv.PrivateLasso(privacy=privacy("auto"), ledger=ledger, **options).fit(data)
    with pytest.raises(ValueError, match="RecordDP or LabelDP"):
        pv.PrivateLasso(privacy=pv.OnAverage(0.1), lam=1.0).fit(blocks)
    with pytest.raises(ValueError, match="sample_weight"):
        pv.PrivateLasso(privacy=privacy("auto")).fit(blocks, sample_weight=np.ones(200))
    assert not ledger.book.entries


def test_the_mean_that_corrects_the_intercept_does_not_depend_on_the_cut():
    """Zeros and ones, of which few are ones; the mean of predictions is that of the labels."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (3000, 3))
    y = (rng.random(3000) < 0.2 + 0.2 * X[:, 0]).astype(float)
    options, found = FitOptions(pv.LabelDP(1.0, 1e-6, (0, 1))), set()
    for parts in (1, 3, 11):
        blocks = RowBlocks.of_arrays(X, y, n_parts=parts)
        plan = plan_for(blocks, options, seeded=True)
        assert mu_of_sums(plan.guarantee) > 0.0
        model = plan.release(None, rng=np.random.default_rng(1)).solve()
        found.add((model.intercept, *model.coef.tolist()))
        assert abs(np.mean(y - X @ model.coef - model.intercept)) < 0.05
    assert len(found) == 1


def test_columns_of_one_value_are_refused(size):
    blocks = RowBlocks.of_arrays(np.ones((20, 2)), np.linspace(0.0, 1.0, 20))
    if size == "small":  # the mean of the labels is published
        plan = plan_for(blocks, FitOptions(pv.LabelDP(1.0, 1e-6, (0, 1))), seeded=True)
        assert not plan.release(None, rng=np.random.default_rng(0), charged=True).solve().coef.any()
        return
    with pytest.raises(ValueError, match="one value only"):
        plan_for(blocks, FitOptions(pv.LabelDP(1.0, 1e-6, (0, 1))), seeded=True)
