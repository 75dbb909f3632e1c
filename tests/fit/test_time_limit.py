"""A limit of time for what follows the release, and Ctrl-C there."""

import numpy as np
import pytest

import privasso as pv
from privasso.fit import Released, TimeLimitWarning

#: The fits here are repeated on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.fit.PrivacyWarning")
#: Here some coefficients are not zero, which takes time to find; they are at 1.5 λ, too.
LAM = 10.0
PRIVACY = pv.LabelDP(epsilon=10.0, delta=1e-6, y_bounds=(-3, 3))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 120))
    return X, np.clip(X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(80), -3, 3)


def lasso(**options):
    return pv.PrivateLasso(privacy=PRIVACY, random_state=0, **options)


def test_the_choice_of_lambda_ends_with_the_time_and_says_so(data):
    X, y = data
    with pytest.warns(TimeLimitWarning, match="over after 0 of 36 values"):
        est = lasso(lam="auto", denoise=False, time_limit=1e-9).fit(X, y)
    assert est.coef_.shape == (120,)
    with pytest.warns(TimeLimitWarning, match="the time limit of 1e-09 s ended the choice of lam"):
        est = lasso(lam="auto", time_limit=1e-9).fit(X, y)
    # Nothing was solved: the λ above which all is zero, up to the rounding of that λ.
    assert np.abs(est.coef_).max() < 1e-12


def test_a_generous_limit_changes_nothing(data):
    X, y = data
    free, limited = lasso(lam="auto").fit(X, y), lasso(lam="auto", time_limit=600.0).fit(X, y)
    assert free.lam_ == limited.lam_
    np.testing.assert_array_equal(free.coef_, limited.coef_)


def test_a_late_solve_keeps_the_release(data):
    X, y = data
    est = lasso(lam=LAM, time_limit=1e-9)
    with pytest.raises(pv.NotConvergedError, match=r"nothing is lost.*time limit was over"):
        est.fit(X, y)
    assert not hasattr(est, "coef_")
    est.set_params(time_limit=None)
    np.testing.assert_array_equal(est.refit(X, LAM).coef_, lasso(lam=LAM).fit(X, y).coef_)


def test_a_late_path_says_so_for_each_lambda(data):
    X, y = data
    est = lasso(lam=LAM).fit(X, y)
    whole = est.path(X, [LAM, 1.5 * LAM, 1.2 * LAM])
    assert [status.name for status in whole.status] == ["CONVERGED"] * 3
    est.set_params(time_limit=1e-9)
    late = est.path(X, [LAM, 1.5 * LAM, 1.2 * LAM])
    assert [status.name for status in late.status] == ["TIME_LIMIT"] * 3
    assert np.isnan(late.coef).all()


def test_an_interrupted_fit_keeps_the_release_and_says_so(data, monkeypatch):
    X, y = data

    def interrupt(*_):
        raise KeyboardInterrupt

    est = lasso(lam=LAM)
    with monkeypatch.context() as patch:
        patch.setattr(Released, "solve", interrupt)
        with pytest.raises(KeyboardInterrupt) as caught:
            est.fit(X, y)
    assert "refit(X, lam)" in "".join(caught.value.__notes__)
    np.testing.assert_array_equal(est.refit(X, LAM).coef_, lasso(lam=LAM).fit(X, y).coef_)


def test_a_limit_is_checked_before_noise_is_drawn(data):
    est = lasso(lam=LAM, time_limit=-1.0)
    with pytest.raises(ValueError, match="time_limit"):
        est.fit(*data)
    assert not hasattr(est, "release_")
