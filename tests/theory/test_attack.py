"""The predicted membership attack: simulated laws, identities, and exact attacks on releases."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

import privasso as pv
from privasso.theory import Attack, membership_losses

V1, V2 = pv.Uniform(), pv.LogNormal()


def simulated(attack, rng, size):
    """ℓ under "out" from its definition, with A and r drawn jointly; "in" by its weights e^ℓ."""
    V, J = attack.V, attack.information
    s2 = 1.0 if attack.residual is None else 1.0 - attack.overlap
    centre = attack.residual or 0.0
    draw = rng.multivariate_normal([0.0, 0.0], [[J, -V], [-V, s2]], size)
    A, r = draw[:, 0], centre + draw[:, 1]
    return math.log1p(V) + A * r - 0.5 * J * r * r


@pytest.mark.parametrize(
    "attack",
    [
        Attack(0.0, 1.0, 0.3),
        Attack(0.4, 0.5, 0.6),
        Attack(0.9, 6.0, 0.5),
        Attack(0.3, 1.0, 0.6, residual=0.5),
        Attack(0.3, 1.0, 0.6, residual=-2.0),
    ],
    ids=repr,
)
def test_rates_of_simulated_scores(attack):
    rng = np.random.default_rng(0)
    loss = simulated(attack, rng, 400_000)
    weight = np.exp(loss)
    error = weight.std() / math.sqrt(loss.size)
    assert abs(weight.mean() - 1.0) < 4.0 * error
    for threshold in (-1.0, 0.0, 0.5, 2.0):
        false, true = attack.rates(threshold)
        above = loss > threshold
        assert abs(above.mean() - false) < 4.5 * math.sqrt(false * (1 - false) / loss.size)
        gain = weight * above
        assert abs(gain.mean() - true) < 4.5 * gain.std() / math.sqrt(loss.size) + 1e-9
    # P(in > out) from the weights: pairs of independent halves.
    one, two = loss[:200_000], loss[200_000:]
    order = np.searchsorted(np.sort(one), two) / one.size
    pairs = np.exp(two) * order
    assert abs(pairs.mean() - attack.auc) < 4.5 * pairs.std() / math.sqrt(two.size) + 1e-3


def test_without_response_it_is_a_mixture_of_gaussian_shifts():
    """V = 0: given the residual, the shift is √J·|r| deviations."""
    attack = Attack(0.0, 2.0, 0.0)

    def mean(of):
        return 2.0 * quad(lambda r: stats.norm.pdf(r) * of(math.sqrt(2.0) * r), 0.0, 12.0)[0]

    advantage = mean(lambda mu: 2.0 * stats.norm.cdf(0.5 * mu) - 1.0)
    assert attack.advantage == pytest.approx(advantage, rel=1e-9)
    false = mean(lambda mu: stats.norm.sf((1.5 + 0.5 * mu * mu) / mu) if mu else 0.0)
    assert attack.rates(1.5)[0] == pytest.approx(false, rel=1e-8)


@pytest.mark.parametrize("law", [V1, V2], ids=["v1", "v2"])
@pytest.mark.parametrize("alpha", [0.5, 1.5])
def test_the_mean_score_is_the_divergence(law, alpha):
    fp = pv.state_evolution(pv.Model(alpha=alpha, scales=law), 0.3, pv.PowerLaw(0.1, 1.0))
    attack = fp.attack()
    out, into = attack._sides()
    halves = -out.weight @ out.mean, into.weight @ into.mean
    P, V = fp.onavekl("paper"), fp.V
    assert halves[0] == pytest.approx(V - math.log1p(V) + P * (1 + V) ** 2 / 2, rel=1e-9)
    assert halves[1] == pytest.approx(math.log1p(V) - V / (1 + V) + P / 2, rel=1e-9)
    assert sum(halves) == pytest.approx(fp.onavekl(), rel=1e-9)


@pytest.mark.parametrize("attack", [Attack(0.3, 1.0, 0.6), Attack(0.05, 8.0, 0.9)], ids=repr)
def test_records_average_to_the_whole(attack):
    """Mean residuals are N(0, C); the mixture of their attacks is the attack on all records."""
    z, w = np.polynomial.hermite_e.hermegauss(101)
    w = w / w.sum()
    for threshold in (-0.7, 0.0, 1.0):
        each = [attack.of_record(math.sqrt(attack.overlap) * r).rates(threshold) for r in z]
        mixed = w @ np.array(each)
        assert mixed == pytest.approx(np.array(attack.rates(threshold)), rel=1e-6)


def test_true_positive_rates_are_those_of_a_curve():
    attack = Attack(0.4, 3.0, 0.5)
    fpr = np.array([0.0, 1e-6, 1e-3, 0.01, 0.1, 0.5, 0.999, 1.0])
    tpr = attack.tpr(fpr)
    assert tpr[0] == 0.0
    assert tpr[-1] == 1.0
    assert np.all(np.diff(tpr) > 0.0)
    assert np.all(tpr[1:-1] > fpr[1:-1])
    fine = np.linspace(0.0, 1.0, 301)
    assert np.trapezoid(attack.tpr(fine), fine) == pytest.approx(attack.auc, abs=2e-3)
    assert float(attack.tpr(0.1)) == tpr[4]
    perfect = Attack(0.1, math.inf, 1.0)
    assert (perfect.auc, perfect.advantage, float(perfect.tpr(0.0))) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("lam", [5.0, 8.0, 30.0])
def test_of_a_release_of_nothing_an_attack_is_a_guess(lam):
    attack = pv.state_evolution(pv.Model(), lam, pv.Gram(0.1)).attack()
    fpr = np.array([0.0, 1e-3, 0.1, 0.5, 1.0])
    for each in (attack, attack.of_quantile(0.99), attack.of_record(3.0)):
        assert each.tpr(fpr) == pytest.approx(fpr, rel=1e-6)
        assert each.auc == pytest.approx(0.5, abs=1e-9)
        assert each.advantage == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("sigma", [1e-12, 1e-6])
def test_with_next_to_no_noise_every_record_is_found(sigma):
    attack = pv.state_evolution(pv.Model(), 0.2, pv.Gram(sigma)).attack()
    for each in (attack, attack.of_quantile(0.99)):
        assert 1.0 - 1e-3 < each.auc <= 1.0


def test_where_no_attack_is_predicted():
    unstable = pv.state_evolution(pv.Model(), 0.05, pv.Gram(1.0))
    infinite = pv.state_evolution(pv.Model(alpha=2.0), 0.5, pv.Isotropic(0.1))
    clipped = pv.state_evolution(pv.Model(alpha=2.0), 0.5, pv.Gram(0.1), kappa=0.1, ridge=0.1)
    for fp, why in ((unstable, "unstable"), (infinite, "infinite"), (clipped, "objective_delta")):
        with pytest.raises(ValueError, match=why):
            fp.attack()
    with pytest.raises(ValueError, match="fpr"):
        Attack(0.1, 1.0, 0.5).tpr(1.5)
    with pytest.raises(ValueError, match="share"):
        Attack(0.1, 1.0, 0.5).of_quantile(1.0)


def releases(model, lam, noise, n, sets, draws, records, seed):
    """Exact scores of records outside and inside the data, by data set, noise and record."""
    out, into, overlap, error = [], [], [], []
    for k in range(sets):
        rng = np.random.default_rng([seed, k])
        s = model.sample(n_features=n, rng=rng)
        m = s.F.shape[0] - records
        F, y, G, z = s.F[:m], s.y[:m], s.F[m:], s.y[m:]
        x = pv.solve_many(F, y, lam, noise.draw(s.v, rng=rng, size=draws)).x
        given = (F, y, lam, noise.variances(s.v), x)
        out.append(membership_losses(*given, rows=G, labels=z, member=False))
        into.append(membership_losses(*given, rows=F[:records], labels=y[:records], member=True))
        r = z[:, None] - G @ x
        error.append(np.mean(r**2))
        overlap.append(np.mean(r.sum(axis=1) ** 2 - (r**2).sum(axis=1)) / (draws * (draws - 1)))
    return np.array(out), np.array(into), np.array(overlap), np.array(error)


def auc(out, into):
    ranks = stats.rankdata(np.concatenate([out.ravel(), into.ravel()]))
    above = ranks[out.size :].sum() - into.size * (into.size + 1) / 2
    return above / (out.size * into.size)


def spread(of, out, into, rng):
    """Standard error over data sets, by the bootstrap."""
    places = [rng.integers(0, len(out), len(out)) for _ in range(200)]
    return np.std([of(out[k], into[k]) for k in places])


def tpr_at(fpr):
    def of(out, into):
        return np.mean(into > np.quantile(out, 1.0 - fpr))

    return of


# With isotropic noise on v1 the smallest column alone decides the error, and so the attack: the
# AUC was 0.603 predicted for 500 quantiles of the law, and 0.586 ± 0.003 measured.
POINTS = [
    (0.5, V1, pv.Gram(0.07), 0.2),
    (0.5, V1, pv.PowerLaw(0.07, 1.0), 0.3),
    (0.5, V2, pv.Gram(0.1), 0.3),
    (0.5, V2, pv.PowerLaw(0.1, 1.0), 0.3),
    (1.5, pv.Uniform(0.2, 1.0), pv.Isotropic(0.1), 0.3),
    (1.5, V1, pv.Gram(0.1), 0.2),
    (1.5, V2, pv.Isotropic(0.1), 0.2),
    (1.5, V2, pv.PowerLaw(0.2, 1.0), 0.2),
]
QUICK = [POINTS[0], POINTS[7]]


def agrees(point, n, sets, records):
    alpha, law, noise, lam = point
    model = pv.Model(alpha=alpha, scales=law)
    isotropic = isinstance(noise, pv.Isotropic)
    attack = pv.state_evolution(model, lam, noise, n_features=n if isotropic else None).attack()
    out, into, both, error = releases(model, lam, noise, n, sets, 4, records, seed=1)
    rng = np.random.default_rng(2)
    assert abs(auc(out, into) - attack.auc) < 4.0 * spread(auc, out, into, rng)
    for fpr in (0.001, 0.01, 0.1):
        if fpr * out.size < 10.0:
            continue
        wrong = spread(tpr_at(fpr), out, into, rng)
        assert abs(tpr_at(fpr)(out, into) - attack.tpr(fpr)) < 4.0 * wrong + 1e-3
    ratio = both.mean() / error.mean()
    wrong = np.std(both / error.mean() - ratio * error / error.mean()) / math.sqrt(sets)
    assert abs(ratio - attack.overlap) < 4.0 * wrong + 0.01


@pytest.mark.parametrize("point", QUICK, ids=str)
def test_exact_attacks_on_releases(point):
    agrees(point, 400, 40, 20)


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_exact_attacks_on_many_releases(point):
    agrees(point, 500, 100, 40)


def test_scores_of_many_records_are_those_of_two_densities():
    rng = np.random.default_rng(3)
    s = pv.Model(alpha=1.2, scales=V2).sample(n_features=30, rng=rng)
    F, y, noise = s.F[:-3], s.y[:-3], pv.PowerLaw(0.2, 1.0)
    variances = noise.variances(s.v)
    x = pv.solve_many(F, y, 0.2, noise.draw(s.v, rng=rng, size=4)).x
    x[:, 3] = 0.0
    given = (F, y, 0.2, variances, x)
    out = membership_losses(*given, rows=s.F[-3:], labels=s.y[-3:], member=False)
    into = membership_losses(*given, rows=F[:3], labels=y[:3], member=True)
    for k, release in enumerate(x.T):
        here = pv.log_density(F, y, 0.2, variances, release)
        for a in range(3):
            more = np.vstack([F, s.F[-3 + a]]), np.append(y, s.y[-3 + a])
            less = np.delete(F, a, axis=0), np.delete(y, a)
            added = pv.log_density(*more, 0.2, variances, release) - here
            removed = here - pv.log_density(*less, 0.2, variances, release)
            assert out[k, a] == pytest.approx(added, abs=1e-8)
            assert into[k, a] == pytest.approx(removed, abs=1e-8)


def test_releases_that_cannot_be():
    F = np.ones((3, 2))
    with pytest.raises(ValueError, match="linearly dependent"):
        membership_losses(
            F, np.ones(3), 0.1, np.ones(2), np.ones((2, 1)), rows=F[:1], labels=[1.0], member=False
        )


def test_columns_too_small_to_be_selected_do_no_harm():
    """The limit of many columns agrees with many given ones, down to scales near zero."""
    model, noise = pv.Model(), pv.PowerLaw(0.1, 0.5)
    limit = pv.state_evolution(model, 0.2, noise).attack()
    given = pv.state_evolution(model, 0.2, noise, n_features=3000).attack()
    assert limit.overlap == pytest.approx(given.overlap, rel=2e-3)
