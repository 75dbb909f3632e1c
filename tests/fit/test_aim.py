"""λ that selects: how often noise alone gives coefficients, against the chance that is stated."""

import numpy as np
import pytest
from scipy.stats import binom, multivariate_normal, norm

import privasso as pv
from privasso._tuned import SELECT_CHANCE, SELECT_LOSS
from privasso.fit import FitOptions, plan_for
from privasso.planning import select_threshold

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
FITS = 60
#: So many of the fits have coefficients with a chance of one in a thousand if each has with 5 %.
MOST = int(binom.isf(1e-3, FITS, SELECT_CHANCE))


def table(m, n, seed, *, shared=0.0, place=0.5, level=0.5, deviation=1 / 6):
    """Columns in [0, 1] that share something, and labels that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    both = np.sqrt(1 - shared) * rng.uniform(-0.5, 0.5, (m, n))
    X = np.clip(place + both + np.sqrt(shared) * rng.uniform(-0.5, 0.5, (m, 1)), 0.0, 1.0)
    return X, np.clip(level + deviation * rng.standard_normal(m), 0.0, 1.0)


def kinds(n):
    return {
        "labels": pv.LabelDP(1.0, 1e-6, (0, 1)),
        "emptied": pv.LabelDP(3.0, 1e-6, (0, 1), neighbours="emptied"),
        "released": pv.LabelDP(1.0, 1e-6, (0, 1), mechanism="release"),
        "records": pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * n, y_bounds=(0, 1)),
    }


@pytest.mark.parametrize("kind", ["labels", "emptied", "released", "records"])
@pytest.mark.parametrize(
    ("shared", "place", "level", "deviation"),
    [(0.0, 0.5, 0.5, 1 / 6), (0.6, 0.5, 1 / 3, 1 / 6), (0.0, 0.6, 2 / 3, 1 / 12)],
)
def test_noise_alone_gives_coefficients_no_more_often_than_stated(
    kind, shared, place, level, deviation
):
    n, found = 8, 0
    for seed in range(FITS):
        X, y = table(500, n, seed, shared=shared, place=place, level=level, deviation=deviation)
        est = pv.PrivateLasso(privacy=kinds(n)[kind], aim="select", random_state=seed)
        found += bool(est.fit(X, y).coef_.any())
    assert found <= MOST


@pytest.mark.parametrize("kind", ["labels", "records"])
def test_columns_that_were_chosen_in_noise_have_no_coefficients(kind):
    found = 0
    for seed in range(FITS):
        X, y = table(400, 60, seed)
        est = pv.PrivateLasso(
            privacy=kinds(60)[kind], aim="select", screen=4, random_state=seed
        ).fit(X, y)
        found += bool(est.coef_.any())
    assert found <= MOST


def test_classes_that_have_nothing_to_do_with_the_columns():
    dp, found = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * 8, y_bounds=(0, 1)), 0
    for seed in range(FITS):
        X, y = table(500, 8, seed, place=0.6, level=0.3, deviation=1.0)
        est = pv.PrivateLasso(privacy=dp, loss=pv.Logistic(), aim="select", random_state=seed)
        found += bool(est.fit(X, (y > 0.5).astype(float)).coef_.any())
    assert found <= MOST


@pytest.mark.parametrize("kind", ["labels", "records"])
def test_true_columns_are_kept_and_others_are_not(kind):
    """Four of twelve columns matter; fits of records keep others, too, to predict.

    In 60 fits of labels to predict, 5 kept one or two others.
    """
    false = {"predict": 0, "select": 0}
    for seed in range(10):
        X, noise = table(20_000, 12, seed)
        y = np.clip(noise + 0.25 * (X[:, :4] - 0.5).sum(axis=1), 0.0, 1.0)
        for aim in false:
            est = pv.PrivateLasso(privacy=kinds(12)[kind], aim=aim, random_state=seed).fit(X, y)
            assert est.coef_[:4].all()
            false[aim] += int(np.count_nonzero(est.coef_[4:]))
    assert false["select"] == 0
    assert (false["predict"] > 4) == (kind == "records")


def test_the_threshold_covers_normal_numbers_that_depend_on_each_other():
    """Against the exact law of two correlated numbers; for independent ones it is nearly sharp."""
    both = select_threshold(np.array([1.0, 2.0]))
    for correlation in (-0.9, 0.0, 0.5):
        covariance = np.array([[1.0, 2.0 * correlation], [2.0 * correlation, 4.0]])
        law = multivariate_normal(mean=np.zeros(2), cov=covariance)  # pyright: ignore[reportArgumentType]
        inside = law.cdf(np.array([both, both]), lower_limit=np.array([-both, -both]))
        assert 1.0 - inside <= SELECT_CHANCE + 1e-6
    assert select_threshold(np.ones(5), among=50) == pytest.approx(
        norm.isf(SELECT_CHANCE / 100), rel=1e-6
    )


def test_by_default_little_is_lost():
    """With many rows the default selects, and loses no more than it may."""
    for seed in range(3):
        X, noise = table(40_000, 12, seed)
        y = np.clip(noise + 0.25 * (X[:, :4] - 0.5).sum(axis=1), 0.0, 1.0)
        fits = [
            pv.PrivateLasso(privacy=kinds(12)["labels"], aim=aim, random_state=seed)
            for aim in ("auto", "predict")
        ]
        sparse, usual = (est.fit(X[:20_000], y[:20_000]) for est in fits)
        assert np.count_nonzero(sparse.coef_) == 4
        lost = usual.score(X[20_000:], y[20_000:]) - sparse.score(X[20_000:], y[20_000:])
        assert lost <= SELECT_LOSS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aim": "some"}, "aim must be one of"),
        ({"aim": "select", "denoise": False}, "denoise=True"),
        ({"aim": "select", "privacy": pv.OnAverage(0.1), "lam": 1.0}, "LabelDP or RecordDP"),
        ({"aim": "select", "loss": pv.Logistic()}, "logistic"),
    ],
)
def test_an_aim_that_cannot_be_met_is_refused(options, message):
    X, _ = table(50, 2, 0)
    with pytest.raises(ValueError, match=message):
        plan_for(X, FitOptions(**{"privacy": pv.LabelDP(1.0, 1e-6, (0, 1)), **options}))


def test_an_aim_needs_noise_of_a_known_size():
    dp = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * 2, y_bounds=(0, 1), shape="private")
    with pytest.raises(ValueError, match="without a shape"):
        plan_for(np.zeros((50, 2)), FitOptions(dp, aim="select"))
