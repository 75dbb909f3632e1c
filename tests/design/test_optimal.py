"""The optimum against brute force with public predictions, and its price against differences."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

import privasso as pv
from privasso.theory import label_sensitivity

V1, V2 = pv.Uniform(), pv.LogNormal(0.0, 0.5)
MODEL = pv.Model(scales=V2)


def never_worse(seed, random_model, brute_force, shapes):
    model, kappa = random_model(seed)
    best = pv.optimal_design(model, pv.MaxLeakage(kappa))
    assert best.onavekl() <= kappa * (1 + 1e-6)
    assert best.onavekl() >= kappa * (1 - 1e-3) or best.multiplier == 0.0
    fp = pv.state_evolution(model, best.lam, best.noise)
    assert (fp.E, fp.onavekl(), fp.rho_hat) == (best.E, best.onavekl(), best.rho_hat)
    for name, shape in shapes.items():
        if name == "isotropic" and not model.scales.inverse_mean_is_finite:
            assert math.inf == best.comparison[name].E
            continue
        oracle = brute_force(model, shape, kappa)
        assert oracle * (1 + 1e-3) >= best.E
        assert oracle * (1 - 2e-3) <= best.comparison[name].E <= oracle * (1 + 1e-3)
        assert best.comparison[name].ratio >= 1 - 1e-4


@pytest.mark.parametrize("seed", [5])
def test_never_worse_than_the_common_shapes(seed, random_model, brute_force, shapes):
    never_worse(seed, random_model, brute_force, shapes)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_never_worse_in_random_models(seed, random_model, brute_force, shapes):
    never_worse(seed, random_model, brute_force, shapes)


def test_shape_by_brute_force_at_fixed_lambda():
    # With λ given there is one number left besides the level: scan it with public predictions.
    lam, kappa = 0.3, 1.6

    def error(gamma):
        design = pv.PowerLaw(1.0, float(gamma))
        sigmas = np.geomspace(0.02, 0.3, 400)
        table = pv.tradeoff(MODEL, lam, design, sigmas)
        leak = np.log(table["onavekl"].fill_null(np.inf).to_numpy() / kappa)
        if not (leak <= 0).any():
            return np.inf
        k = int(np.flatnonzero(leak <= 0)[0])
        part = leak[k - 1] / (leak[k - 1] - leak[k])
        E = np.log(table["E"].to_numpy()[k - 1 : k + 1])
        return float(np.exp(E[0] + part * (E[1] - E[0])))

    oracle = minimize_scalar(error, bounds=(0.3, 2.0), method="bounded", options={"xatol": 1e-3})
    best = pv.optimal_design(MODEL, pv.MaxLeakage(kappa), lam=lam)
    assert best.lam == lam
    assert pytest.approx(oracle.fun, rel=1e-4) == best.E  # pyright: ignore
    assert best.gamma == pytest.approx(oracle.x, abs=0.03)  # pyright: ignore


def test_noise_may_lower_the_error():
    # Hence the smallest σ that meets a constraint need not be the best one.
    model = pv.Model(0.27, 0.17, 0.02, pv.Uniform(0.48, 1.0))
    table = pv.tradeoff(model, 0.5, pv.Isotropic(1.0), [0.02, 0.08, 0.11, 0.2])
    E = table["E"].to_numpy()
    assert E[0] > E[1] > E[2]
    assert E[3] > E[2]
    kappa = 1.02 * float(table["onavekl"][2])
    assert table["onavekl"][1] == pytest.approx(kappa, rel=0.1)
    best = pv.optimal_design(model, pv.MaxLeakage(kappa), gamma=0.0, lam=0.5)
    assert E[2] >= best.E


def test_least_leakage_for_an_error_is_the_same_frontier():
    for model in (MODEL, pv.Model(scales=V1), pv.Model(0.36, 0.05, 0.14, pv.Uniform(0.3, 1.0))):
        there = pv.optimal_design(model, pv.MaxLeakage(0.7))
        back = pv.optimal_design(model, pv.MaxError(there.E))
        assert back.onavekl() == pytest.approx(0.7, rel=1e-4)
        assert back.lam == pytest.approx(there.lam, rel=1e-2)
        assert back.multiplier == pytest.approx(1 / there.multiplier, rel=1e-2)


@pytest.mark.parametrize(("kind", "target"), [(pv.MaxLeakage, 1.7), (pv.MaxError, 0.05)])
@pytest.mark.parametrize("lam", [None, 0.3])
def test_multiplier_is_the_slope_of_the_optimal_value(kind, target, lam):
    def solved(target):
        return pv.optimal_design(MODEL, kind(target), lam=lam)

    def value(target):
        best = solved(target)
        return best.E if kind is pv.MaxLeakage else best.onavekl()

    slope = (value(target * 1.004) - value(target * 0.996)) / (0.008 * target)
    best = solved(target)
    assert best.multiplier == pytest.approx(slope, rel=1e-2)
    assert best.multiplier < 0


@pytest.mark.parametrize("n_features", [None, 200])
def test_label_budget_by_brute_force(n_features):
    model = pv.Model(alpha=10.0, scales=V1)
    budget = pv.LabelDP(3.0, 1e-5, (-1.0, 1.0))
    best = pv.optimal_design(model, pv.Budget(budget), n_features=n_features)
    mu = budget.label_width * label_sensitivity(model, best.noise, n_features=n_features)
    assert mu == pytest.approx(budget.mu, rel=1e-9)

    def error(x):
        design = pv.PowerLaw(1.0, float(x[0]))
        unit = budget.label_width * label_sensitivity(model, design, n_features=n_features)
        if not math.isfinite(unit):
            return 1.0
        noise = design.with_sigma(unit / budget.mu)
        fp = pv.state_evolution(model, float(np.exp(x[1])), noise, n_features=n_features)
        return min(fp.E, 1.0)

    options = {"xatol": 1e-3, "fatol": 1e-8, "maxfev": 100}
    oracle = minimize(error, [0.7, 1.0], method="Nelder-Mead", options=options)
    assert oracle.fun * (1 + 1e-4) >= best.E
    assert best.gamma == pytest.approx(oracle.x[0], abs=0.05)
    if n_features is None:
        # Gram-based noise has an infinite sensitivity where E[1/v] is infinite.
        assert math.inf == best.comparison["gram"].E
        step = 0.02
        values = [
            pv.optimal_design(model, pv.Budget(replace(budget, epsilon=3.0 + s * step))).E
            for s in (-1, 1)
        ]
        assert best.multiplier == pytest.approx((values[1] - values[0]) / (2 * step), rel=1e-2)


def test_both_kinds_of_leakage():
    best = pv.optimal_design(MODEL, pv.MaxLeakage(1.0))
    fp = pv.state_evolution(MODEL, best.lam, best.noise)
    gram = best.comparison["gram"]
    there = pv.state_evolution(MODEL, gram.lam, pv.Gram(gram.sigma))
    for kind in ("joint", "paper"):
        assert best.onavekl(kind) == fp.onavekl(kind)
        assert gram.onavekl(kind) == there.onavekl(kind)
    without = pv.optimal_design(pv.Model(scales=V1), pv.MaxLeakage(1.0)).comparison["isotropic"]
    assert (without.best, without.E, without.ratio) == (None, math.inf, math.inf)
    assert without.onavekl() == math.inf
    assert math.isnan(without.lam)
    assert math.isnan(without.sigma)


def test_one_scale_has_no_shape_to_choose():
    model = pv.Model(scales=pv.Constant(2.0))
    best = pv.optimal_design(model, pv.MaxLeakage(1.0))
    assert best.comparison["isotropic"].ratio == pytest.approx(1.0, abs=1e-5)


def test_many_columns_are_gathered_without_loss():
    rng = np.random.default_rng(3)
    model = pv.Model(scales=pv.Empirical(np.exp(rng.normal(0.0, 0.5, 3000))))
    best = pv.optimal_design(model, pv.MaxLeakage(2.0))
    assert best.onavekl() == pytest.approx(2.0, rel=1e-5)  # on all 3000 columns
    near = [
        pv.optimal_design(model, pv.MaxLeakage(2.0), gamma=best.noise.gamma + step).E  # pyright: ignore
        for step in (-0.1, 0.1)
    ]
    assert min(near) >= best.E


def test_targets_out_of_reach_name_the_nearest():
    with pytest.raises(pv.InfeasibleError, match=r"at lam = 0.2: the least is 2\.1") as error:
        pv.optimal_design(MODEL, pv.MaxLeakage(0.5), lam=0.2)
    least = float(str(error.value).split("the least is ")[1].split(",")[0])
    assert pv.optimal_design(MODEL, pv.MaxLeakage(1.001 * least), lam=0.2).E < 1.0
    gammas = np.linspace(0.0, 2.0, 9)
    table = [
        pv.tradeoff(MODEL, 0.2, pv.PowerLaw(1.0, g), np.geomspace(0.02, 0.3, 60)) for g in gammas
    ]
    assert least <= min(t["onavekl"].min() for t in table) * 1.0001  # pyright: ignore

    with pytest.raises(pv.InfeasibleError, match=r"the least is .* without noise") as error:
        pv.optimal_design(MODEL, pv.MaxError(0.02))
    least = float(str(error.value).split("the least is ")[1].split(",")[0])
    silent = [
        pv.state_evolution(MODEL, lam, pv.Gram(0.0)).E for lam in np.geomspace(0.02, 0.5, 200)
    ]
    assert least == pytest.approx(min(silent), rel=1e-3)

    # At a λ that is given, the least error may need some noise.
    model = pv.Model(0.27, 0.17, 0.02, pv.Uniform(0.48, 1.0))
    with pytest.raises(pv.InfeasibleError, match=r"at lam = 0.5: the least is .* sigma") as error:
        pv.optimal_design(model, pv.MaxError(0.05), lam=0.5)
    least = float(str(error.value).split("the least is ")[1].split(",")[0])
    silent = pv.state_evolution(model, 0.5, pv.Gram(0.0)).E
    assert least < 0.999 * silent
    assert silent > pv.optimal_design(model, pv.MaxError(1.002 * least), lam=0.5).E

    budget = pv.LabelDP(1.0, 1e-6, (-1.0, 1.0))
    with pytest.raises(pv.InfeasibleError, match="lam must be above") as error:
        pv.optimal_design(MODEL, pv.Budget(budget), lam=1.0)
    needed = float(str(error.value).split("above ")[1].split(",")[0])
    assert pv.optimal_design(MODEL, pv.Budget(budget), lam=1.02 * needed).stability < 1.0

    with pytest.raises(pv.InfeasibleError, match="gamma = 0 the error grows"):
        pv.optimal_design(pv.Model(scales=V1), pv.MaxLeakage(1.0), gamma=0.0)


def test_says_when_the_answer_is_nearly_nothing():
    best = pv.optimal_design(MODEL, pv.MaxLeakage(1e-4))
    assert best.nearly_null
    assert best.null_error == pytest.approx(0.1 * np.exp(0.5) + 0.01)
    assert best.null_error > best.E
    assert not pv.optimal_design(MODEL, pv.MaxLeakage(2.0)).nearly_null


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "target must be MaxLeakage"),
        ({"target": pv.MaxError(1.0)}, "releasing nothing at all"),
        ({"target": pv.MaxLeakage(1.0), "family": "cubic"}, "family must be one of"),
        ({"target": pv.MaxLeakage(1.0), "lam": 0.0}, "lam must be positive"),
        ({"target": pv.MaxLeakage(1.0), "n_features": 0}, "n_features must be at least 1"),
        ({"target": pv.MaxLeakage(1.0), "scale_error": -1.0}, "scale_error must be zero or"),
        (
            {"target": pv.Budget(pv.LabelDP(1, 1e-5, (0, 1))), "scale_error": 0.1},
            "does not go with label_dp",
        ),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        pv.optimal_design(MODEL, **arguments)


@pytest.mark.parametrize("law", [V1, V2], ids=["v1", "v2"])
def test_the_least_error_at_a_given_advantage_of_the_attack(law):
    """Against a grid over λ and γ, each with the level that just meets the target."""
    from scipy.optimize import brentq

    model = pv.Model(alpha=0.7, scales=law)
    best = pv.optimal_design(model, pv.MaxAdvantage(0.25))
    assert best.point.attack().advantage == pytest.approx(0.25, rel=1e-4)
    errors = []
    for lam in best.lam * np.geomspace(0.6, 1.7, 7):
        for gamma in (0.6, 1.0, 1.4, 2.0):

            def excess(log_sigma, lam=lam, gamma=gamma):
                noise = pv.PowerLaw(float(np.exp(log_sigma)), gamma)
                found = pv.state_evolution(model, float(lam), noise).advantage()
                return (1.0 if np.isnan(found) else found) - 0.25

            levels = np.log(best.noise.sigma) + np.linspace(-2.0, 2.0, 15)
            values = [excess(level) for level in levels]
            for low, high, a, b in zip(levels, levels[1:], values, values[1:], strict=False):
                if a > 0.0 >= b:
                    root = brentq(excess, low, high)
                    assert isinstance(root, float)
                    sigma = float(np.exp(root))
                    fp = pv.state_evolution(model, float(lam), pv.PowerLaw(sigma, gamma))
                    errors.append(fp.E)
    assert errors
    assert min(errors) * (1.0 + 1e-6) >= best.E
    assert 0.9 * min(errors) < best.E
    with pytest.raises(pv.InfeasibleError, match="an advantage of"):
        pv.optimal_design(model, pv.MaxAdvantage(0.001), lam=0.1)


def test_the_least_lambda_of_scales_beyond_double_precision():
    """The search for it begins at a λ that no double holds."""
    model = pv.Model(scales=pv.Constant(1e100))
    with pytest.raises(pv.InfeasibleError, match="lam must be above inf"):
        pv.optimal_design(model, pv.Budget(pv.LabelDP(1.0, 1e-6, (-1.0, 1.0))), lam=1.0)
