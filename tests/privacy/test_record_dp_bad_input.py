"""Strange settings and tables for fits of whole records: a right answer, or one plain sentence."""

import numpy as np
import pytest

import privasso as pv

GOOD = {"epsilon": 1.0, "delta": 1e-6, "bounds": [(0.0, 1.0)] * 2, "y_bounds": (0.0, 1.0)}
RNG = np.random.default_rng(0)
pytestmark = pytest.mark.filterwarnings("ignore:the same labels")
X, Y = RNG.random((60, 2)), RNG.random(60)


def fitted(X=X, y=Y, fit_intercept=True, seed=0, **settings):
    privacy = pv.RecordDP(**{**GOOD, **settings})
    est = pv.PrivateLasso(privacy=privacy, random_state=seed, fit_intercept=fit_intercept)
    return est.fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bounds": [(0.0, np.inf)]}, r"bounds must be finite; pair 0 is \(0.0, inf\)"),
        ({"bounds": [(0.0, 1.0), (-np.inf, 0.0)]}, r"pair 1 is \(-inf, 0.0\)"),
        ({"bounds": [(np.nan, 1.0)]}, "must be finite"),
        ({"bounds": [(2.0, 1.0)]}, r"must not decrease; pair 0 is \(2.0, 1.0\)"),
        ({"bounds": [("low", "high")]}, "holds text"),
        ({"bounds": 3.0}, r"bounds are pairs \(low, high\)"),
        ({"bounds": [(0.0, 1.0, 2.0)]}, r"bounds are pairs \(low, high\)"),
        ({"bounds": []}, r"bounds are pairs \(low, high\)"),
        ({"bounds": {"age": 3.0}}, r"bounds are pairs \(low, high\)"),
        ({"bounds": {"age": (0.0, np.nan)}}, "must be finite"),
        ({"bounds": [(0.0, 1.0j)]}, "complex"),
        ({"y_bounds": (0.0, 0.0)}, r"needs y_bounds=\(low, high\)"),
        ({"y_bounds": None}, "a pair"),
        ({"y_bounds": (0.0, 1.0, 2.0)}, "a pair"),
        ({"y_bounds": (1.0, 0.0)}, "must increase"),
        ({"y_bounds": (0.0, np.nan)}, "must be finite"),
        ({"y_bounds": (-np.inf, 0.0)}, "must be finite"),
        ({"y_bounds": (-1.7e308, 1.7e308)}, "width of y_bounds must be finite"),
        ({"y_bounds": (2.0**53, 2.0**53 + 2.0)}, "too close together for double precision"),
        ({"y_bounds": (1e10, 1e10 + 1e-5)}, "subtract a public number"),
        ({"y_bounds": (0.0, 1e-301)}, "or change the unit"),
        ({"bounds": [(0.0, 1.0), (1e10, 1e10 + 1e-5)]}, "too close together .*; pair 1 is"),
        ({"bounds": (0.0, 1e-301)}, "too close together"),
        ({"bounds": [(-1.7e308, 1.7e308)]}, "finite distance; pair 0"),
        ({"epsilon": np.nan}, "epsilon must be finite"),
        ({"epsilon": np.inf}, "epsilon must be finite"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1e-300}, "delta must be at least"),
        ({"epsilon": 1e3}, "choose a smaller epsilon"),
        ({"epsilon": 1e-11}, "epsilon must be at least 1e-09"),
        ({"kappa": np.inf}, "kappa must be finite"),
        ({"kappa": "auto"}, "kappa must be a real number"),
        ({"kappa": 1e-160}, "change the units"),
        ({"t": np.nan}, "t must be finite"),
        ({"t": 1e160}, "change the units"),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(settings, message):
    with pytest.raises(ValueError, match=message) as caught:
        pv.RecordDP(**{**GOOD, **settings})
    assert "\n" not in str(caught.value)


def test_bounds_are_needed():
    with pytest.raises(ValueError, match="needs bounds="):
        pv.RecordDP(1.0, 1e-6, y_bounds=(0.0, 1.0))
    with pytest.raises(ValueError, match="needs y_bounds="):
        pv.RecordDP(1.0, 1e-6, bounds=[(0.0, 1.0)])


@pytest.mark.parametrize("count", [1, 3])
def test_bounds_for_other_columns(count):
    with pytest.raises(ValueError, match=f"each of the 2 columns, not {count}"):
        fitted(bounds=[(0.0, 1.0)] * count)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_record_outside_the_bounds_is_clipped_without_notice(fit_intercept):
    """The fit is that of the clipped record, to the last bit: no warning, no other outcome."""
    far, clipped = X.copy(), X.copy()
    far[3], clipped[3] = [-1e200, 1e15], [0.0, 1.0]
    y, inside = Y.copy(), Y.copy()
    y[3], inside[3] = 1e300, 1.0
    one = fitted(far, y, fit_intercept)
    two = fitted(clipped, inside, fit_intercept)
    assert np.array_equal(one.coef_, two.coef_)
    assert one.intercept_ == two.intercept_


@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (4, 60), (60, 1)])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_few_rows_and_many_columns(shape, fit_intercept):
    est = fitted(
        RNG.random(shape), RNG.random(shape[0]), fit_intercept, bounds=[(0.0, 1.0)] * shape[1]
    )
    assert np.isfinite(est.coef_).all()
    assert np.isfinite(est.intercept_)


def test_no_rows_and_no_columns():
    with pytest.raises(ValueError, match="0 sample"):
        fitted(X[:0], Y[:0])
    with pytest.raises(ValueError, match="0 feature"):
        fitted(X[:, :0])


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_column_without_a_range_has_no_coefficient(fit_intercept):
    """It says nothing beyond the intercept, whatever its values are."""
    place = 3.0 if fit_intercept else 0.0
    est = fitted(fit_intercept=fit_intercept, bounds=[(place, place), (0.0, 1.0)])
    assert est.coef_[0] == 0.0
    assert est.coef_[1] != 0.0
    none = fitted(fit_intercept=fit_intercept, bounds=[(place, place)] * 2)
    assert not none.coef_.any()
    assert (none.intercept_ != 0.0) == fit_intercept


def test_a_column_of_one_value_is_fitted_like_any_other():
    est = fitted(np.ones((60, 2)), Y)
    assert np.isfinite(est.predict(np.ones((1, 2)))).all()


@pytest.mark.parametrize("power", [-996, -300, 0, 300, 996])
def test_units_of_columns_and_labels_do_not_matter(power):
    """Powers of two, so that scaling is exact; 2^±996 is about 1e±300."""
    scale = 2.0**power
    base = fitted()
    other = fitted(X * scale, Y * scale, bounds=[(0.0, scale)] * 2, y_bounds=(0.0, scale))
    assert np.array_equal(other.coef_, base.coef_)
    assert other.intercept_ == base.intercept_ * scale


@pytest.mark.parametrize(
    ("column", "label"), [(1e-295, 1.0), (1e-290, 1e290), (1e290, 1e-290), (1.0, 1e-295)]
)
def test_units_in_which_no_coefficient_can_be_written(column, label):
    with pytest.raises(ValueError, match="ranges that no coefficient can join"):
        fitted(X * column, Y * label, bounds=[(0.0, column)] * 2, y_bounds=(0.0, label))


def test_the_widest_bounds_there_are():
    est = fitted(bounds=[(-8e307, 8e307)] * 2, y_bounds=(-8e307, 8e307))
    assert np.isfinite(est.predict(X)).all()


@pytest.mark.parametrize("epsilon", [1e-4, 160.0])
def test_extreme_budgets(epsilon):
    assert np.isfinite(fitted(epsilon=epsilon).coef_).all()


@pytest.mark.parametrize("kind", [int, bool, np.float32, str])
def test_other_kinds_of_numbers(kind):
    table = np.rint(X).astype(int).astype(kind)
    if kind is str:
        table = table.astype(object)
    assert np.array_equal(fitted(table).coef_, fitted(np.rint(X)).coef_)
