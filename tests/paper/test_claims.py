"""Every test of a claim on tables made to satisfy the claim, and on tables made to violate it."""

import numpy as np
import polars as pl
import pytest

from privasso.paper._claim import ClaimVerdict, Finding, count_verdicts
from privasso.paper._correlated import CORRELATIONS, GRAMS, NAMES
from privasso.paper._reproduce import CLAIMS

LAWS, DESIGNS = ("uniform", "lognormal"), ("isotropic", "gram")
SAMPLES = 100
JUDGES = {claim.key: claim for claim in CLAIMS}


def points(grid, change):
    """Rows like those of a simulation without failures, each updated with `change(row)`."""
    rows = []
    for law in LAWS:
        for design in DESIGNS:
            for lam, sigma in grid:
                row = {
                    "law": law, "design": design, "lam": lam, "sigma": sigma, "n_features": 1000,
                    "samples": SAMPLES, "exists": SAMPLES, "E": 1.0, "E_se": 0.01,
                    "E_growth": 0.0, "E_growth_se": 0.01, "rho_hat": 0.1,
                    "amp_converged": SAMPLES, "amp_unbounded": 0,
                    "amp_flicker": 0, "amp_diverged": 0, "amp_E": 1.0, "amp_E_se": 0.01,
                    "E_theory": 1.0, "E_realised": 1.0, "status_theory": "stable",
                    "status_limit": "stable",
                }  # fmt: skip
                row.update(change(row) or {})
                rows.append(row)
    return pl.DataFrame(rows)


NOISE = [(lam, sigma) for lam in (0.1, 0.5) for sigma in (0.1, 0.2, 0.4)]
PATH = [(lam, 0.1) for lam in (0.05, 0.1, 0.2, 0.4)]
FAILED = {"amp_converged": 0, "amp_unbounded": SAMPLES, "exists": 0, "status_theory": "unstable"}
THEORY = pl.DataFrame(
    [
        {"law": "uniform", "design": design, "lam": 0.1, "sigma": 0.1, "status": "stable", "E": 1.0}
        for design in DESIGNS
    ]
)


def decide(key, **tables) -> Finding:
    claim = JUDGES[key]
    assert set(claim.needs) <= set(tables)
    return claim.decide(tables)


def fails_from(levels, column):
    """Make Algorithm 1 fail from a σ on, or up to a λ, by law and design."""

    def change(row):
        level = levels[row["design"]] if row["design"] in levels else levels[row["law"]]
        if isinstance(level, dict):
            level = level[row["design"]]
        beyond = row[column] >= level if column == "sigma" else row[column] <= level
        return FAILED if beyond else None

    return change


@pytest.mark.parametrize(
    ("isotropic", "gram", "expected"),
    [
        (0.2, 0.4, ClaimVerdict.CONFIRMED),
        (0.2, 9.0, ClaimVerdict.CONFIRMED),
        (0.4, 0.2, ClaimVerdict.CONTRADICTED),
        (9.0, 9.0, ClaimVerdict.CONTRADICTED),  # isotropic noise never fails
    ],
)
def test_stability_under_noise(isotropic, gram, expected):
    change = fails_from({"isotropic": isotropic, "gram": gram}, "sigma")
    found = decide("a", fig3_points=points(NOISE, change))
    assert found.verdict is expected
    levels = [f"{level:g}" if level < 1.0 else "none" for level in (isotropic, gram)]
    ratio = f"{gram / isotropic:.2f}" if "none" not in levels else "—"
    assert found.tables[0].rows == tuple(
        (law, lam, *levels, ratio) for law in ("v1", "v2") for lam in ("0.1", "0.5")
    )


def growing(isotropic, gram=lambda sigma: sigma, **more):
    """Make E grow with the noise level σ by a part of itself."""

    def change(row):
        if row["design"] == "isotropic":
            return {"E_growth": isotropic(row["sigma"]), **more}
        return {"E_growth": gram(row["sigma"])}

    return change


LEVELS = [(lam, sigma) for lam in (0.1, 0.5) for sigma in (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)]


@pytest.mark.parametrize(
    ("isotropic", "expected", "later"),
    [
        (lambda sigma: 3.0 * sigma, ClaimVerdict.CONFIRMED, 12),
        (lambda sigma: sigma / 3.0, ClaimVerdict.CONTRADICTED, 0),
        (lambda sigma: sigma, ClaimVerdict.UNDECIDED, 0),
        (lambda sigma: 2.0 * sigma**2, ClaimVerdict.PARTLY, 8),  # slower at first, then faster
    ],
)
def test_gradual_error(isotropic, expected, later):
    table = points(LEVELS, growing(isotropic))
    found = decide("b", fig3_points=table, fig3_theory=THEORY)
    assert found.verdict is expected
    assert found.values["later"] == later
    assert sum(found.values[x] for x in ("later", "earlier", "equal")) == 12


def test_levels_of_growth_are_interpolated():
    found = decide("b", fig3_points=points(LEVELS, growing(lambda s: s)), fig3_theory=THEORY)
    # 100 % is reached at σ = 1, and 400 % where E is on the line in logarithms from 4 to 11.
    between = 3.0 * (10.0 / 3.0) ** (np.log(5.0 / 4.0) / np.log(11.0 / 4.0))
    assert found.tables[0].rows[0][3:] == ("1 / 1", f"{between:.2g} / {between:.2g}")


def test_a_larger_error_that_does_not_grow_decides_nothing():
    table = points(NOISE, lambda row: {"E": 2.0} if row["design"] == "isotropic" else None)
    found = decide("b", fig3_points=table, fig3_theory=THEORY)
    assert found.verdict is ClaimVerdict.UNDECIDED


def test_errors_of_the_growth_count():
    spread = {"E_growth_se": 3.0}
    table = points(LEVELS, lambda row: {**growing(lambda s: 3.0 * s)(row), **spread})
    found = decide("b", fig3_points=table, fig3_theory=THEORY)
    assert found.verdict is ClaimVerdict.UNDECIDED


def test_an_error_without_minimiser_has_grown_without_bound():
    def change(row):
        lost = row["design"] == "isotropic" and row["sigma"] > 0.2
        return {"E_growth": 0.0, "exists": 49 if lost else SAMPLES}

    found = decide("b", fig3_points=points(LEVELS, change), fig3_theory=THEORY)
    assert found.verdict is ClaimVerdict.CONFIRMED
    assert found.tables[0].rows[0][2].startswith("0.17 / ")  # between 0.1 and 0.3


def others(change):
    """Points for two pairs of α and ρ."""
    return pl.concat(
        points(LEVELS[:6], change).with_columns(alpha=pl.lit(alpha), rho=pl.lit(rho))
        for alpha, rho in ((0.3, 0.1), (0.5, 0.2))
    )


@pytest.mark.parametrize(
    ("isotropic", "gram", "faster", "expected"),
    [
        (3.0, 10.0, 3.0, ClaimVerdict.CONFIRMED),
        (3.0, 10.0, 1.0 / 3.0, ClaimVerdict.CONTRADICTED),
        (3.0, 10.0, 1.0, ClaimVerdict.UNDECIDED),
        (3.0, 3.0, 3.0, ClaimVerdict.CONTRADICTED),
    ],
)
def test_similar_trends(isotropic, gram, faster, expected):
    def change(row):
        fails = row["sigma"] >= {"isotropic": isotropic, "gram": gram}[row["design"]]
        grown = growing(lambda sigma: faster * sigma)(row)
        return grown | ({"amp_converged": 0} if fails else {})

    assert decide("r", similar_points=others(change)).verdict is expected


@pytest.mark.parametrize(
    ("uniform", "lognormal", "expected"),
    [
        ((0.2, 0.05), (0.1, 0.05), ClaimVerdict.CONFIRMED),
        ((0.1, 0.05), (0.2, 0.05), ClaimVerdict.PARTLY),  # more under v2 than under v1
        ((0.05, 0.1), (0.05, 0.1), ClaimVerdict.CONTRADICTED),
    ],
)
def test_smaller_lambda(uniform, lognormal, expected):
    levels = {
        "uniform": dict(zip(DESIGNS, uniform, strict=True)),
        "lognormal": dict(zip(DESIGNS, lognormal, strict=True)),
    }
    table = points(PATH, fails_from(levels, "lam"))
    assert decide("c", fig4_points=table).verdict is expected


@pytest.mark.parametrize(
    ("far", "expected"), [(1.001, ClaimVerdict.CONFIRMED), (1.5, ClaimVerdict.CONTRADICTED)]
)
def test_large_lambda(far, expected):
    def change(row):
        if row["design"] == "isotropic":
            return {"E": 3.0 if row["lam"] < 0.4 else far}
        return None

    assert decide("d", fig4_points=points(PATH, change)).verdict is expected


def probe(converged):
    return points([(0.05, 0.01)], lambda row: {"amp_converged": converged}).head(1)


@pytest.mark.parametrize(
    ("stable", "unstable", "elsewhere", "expected"),
    [
        (100, 0, 100, ClaimVerdict.CONFIRMED),
        (100, 0, 0, ClaimVerdict.PARTLY),  # the counterexample
        (80, 0, 100, ClaimVerdict.PARTLY),  # runs that do not settle
        (10, 90, 0, ClaimVerdict.CONTRADICTED),
    ],
)
def test_convergence(stable, unstable, elsewhere, expected):
    def change(row):
        if row["sigma"] > 0.2:
            return FAILED | {"amp_converged": unstable}
        return {"amp_converged": stable, "amp_flicker": SAMPLES - stable}

    tables = {"fig3_points": points(NOISE, change), "fig4_points": points(NOISE, change)}
    recursion = pl.DataFrame({"V": [2.0, 1.0] * 20, "V_fixed": 1.5})
    found = decide("e", fig4_probe=probe(elsewhere), fig4_recursion=recursion, **tables)
    assert found.verdict is expected
    assert found.values["recursion_settles"] is False


@pytest.mark.parametrize(
    ("theory", "expected"),
    [(1.02, ClaimVerdict.CONFIRMED), (1.2, ClaimVerdict.CONTRADICTED)],
)
def test_state_evolution_holds(theory, expected):
    table = points(NOISE, lambda row: {"E_theory": theory})
    found = decide("f", fig3_points=table, fig4_points=table)
    assert found.verdict is expected
    assert found.values["points"] == 2 * table.height


def test_state_evolution_that_predicts_nothing_where_runs_converge():
    def change(row):
        return {"status_theory": "unstable"} if row["sigma"] > 0.2 else None

    found = decide("f", fig3_points=points(NOISE, change), fig4_points=points(NOISE, change))
    assert found.values["share"] == 1.0
    assert found.verdict is ClaimVerdict.PARTLY


def curves(leakage, E):
    """Trade-offs traced by σ; `leakage` and `E` are functions of (design, σ)."""
    sigmas = np.geomspace(0.001, 1.0, 61)
    return pl.concat(
        pl.DataFrame(
            {
                "law": law, "design": design, "lam": lam, "status": "stable", "sigma": sigmas,
                "E": E(design, sigmas), "onavekl": leakage(design, sigmas),
                "onavekl_paper": leakage(design, sigmas),
            }
        )
        for law in LAWS
        for design in (*DESIGNS, "power:1")
        for lam in (0.1, 0.2)
    )  # fmt: skip


def bowl(design, sigma):
    return sigma**-2.0 + 100.0 * sigma**2


@pytest.mark.parametrize(
    ("leakage", "expected"),
    [
        (bowl, ClaimVerdict.CONFIRMED),
        (lambda design, sigma: sigma**-2.0, ClaimVerdict.CONTRADICTED),  # monotone
        (lambda design, sigma: 1.0 + sigma, ClaimVerdict.CONTRADICTED),  # no divergence
    ],
)
def test_leakage_curve(leakage, expected):
    table = curves(leakage, lambda design, sigma: 1.0 + sigma)
    assert decide("g", fig5_tradeoff=table).verdict is expected


@pytest.mark.parametrize(("key", "rival"), [("h", "isotropic"), ("k", "power:1")])
@pytest.mark.parametrize(
    ("worse", "expected"), [(2.0, ClaimVerdict.CONFIRMED), (0.5, ClaimVerdict.CONTRADICTED)]
)
def test_trade_off(key, rival, worse, expected):
    def E(design, sigma):
        return 1.0 + sigma * (worse if design == rival else 1.0)

    table = curves(bowl, E)
    assert decide(key, fig5_tradeoff=table).verdict is expected


def test_trade_off_that_crosses_is_partly():
    def E(design, sigma):
        # Isotropic is better at small noise, worse at large, on one of the laws only.
        return 1.0 + (6.0 * sigma**2 if design == "isotropic" else sigma)

    better = curves(bowl, lambda d, s: 1.0 + s * (2.0 if d == "isotropic" else 1.0))
    crossing = curves(bowl, E)
    table = pl.concat([better.filter(law="uniform"), crossing.filter(law="lognormal")])
    assert decide("h", fig5_tradeoff=table).verdict is ClaimVerdict.PARTLY


@pytest.mark.parametrize(
    ("kkt", "expected"),
    [
        (lambda n: 1e-9 + 0.0 * n, ClaimVerdict.CONFIRMED),
        (lambda n: n**-0.5, ClaimVerdict.PARTLY),
        (lambda n: 0.02 + 0.0 * n, ClaimVerdict.CONTRADICTED),
    ],
)
def test_returns_minimiser(kkt, expected):
    n = np.array([250, 500, 1000, 2000])
    table = pl.DataFrame(
        {
            "law": "uniform", "design": "gram", "n_features": n, "kkt": kkt(n.astype(float)),
            "kkt_se": 1e-3, "kkt_exact": 1e-10,
        }
    )  # fmt: skip
    assert decide("i", kkt=table).verdict is expected


@pytest.mark.parametrize(
    ("measured", "expected", "understated"),
    [
        (1.05, ClaimVerdict.CONFIRMED, 0),
        (3.0, ClaimVerdict.CONTRADICTED, 4),
        (0.2, ClaimVerdict.CONTRADICTED, 0),
    ],
)
def test_component_wise(measured, expected, understated):
    table = pl.DataFrame(
        {
            "n_features": [200] * 4, "onavekl_mc": [measured] * 4, "onavekl_mc_se": [0.1] * 4,
            "onavekl": [3.0] * 4, "onavekl_paper": [1.0] * 4,
        }
    )  # fmt: skip
    found = decide("j", leakage=table)
    assert found.verdict is expected
    assert found.values["understated"] == understated


@pytest.mark.parametrize(
    ("gram", "expected"),
    [
        ((1.0, 9.0), ClaimVerdict.CONFIRMED),  # correlated columns do not count
        ((3.0, 1.0), ClaimVerdict.PARTLY),
        ((5.0, 1.0), ClaimVerdict.CONTRADICTED),
    ],
)
def test_effective_isotropy(gram, expected):
    rows = [
        {"design": design, "correlation": c, "noise": "effective", "axis_ratio": ratio}
        for design, ratios in (("isotropic", (4.0, 5.0)), ("gram", gram))
        for c, ratio in zip((0.0, 0.5), ratios, strict=True)
    ]
    assert decide("l", fig1_covariances=pl.DataFrame(rows)).verdict is expected


def small_columns(changes, leakages, nonzero):
    """Tables in which the four quarters have these values, of one λ and one law."""
    case = {"law": "uniform", "lam": 0.2}
    points = [
        {**case, "design": design, "quarter": k + 1, "change": changes[k], "change_se": 0.01}
        for design in DESIGNS
        for k in range(4)
    ]
    theory = [
        {
            **case, "design": design, "scale": k / 4 + column / 100,
            "leakage": leakages[design][k], "nonzero": nonzero[design][k],
        }
        for design in DESIGNS
        for k in range(4)
        for column in range(3)
    ]  # fmt: skip
    return {"small_points": pl.DataFrame(points), "small_theory": pl.DataFrame(theory)}


UP, DOWN = [1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]
SHARES = {"isotropic": [0.1] * 4, "gram": [0.01] * 4}


@pytest.mark.parametrize(
    ("changes", "leakages", "nonzero", "expected"),
    [
        (DOWN, {"isotropic": DOWN, "gram": UP}, SHARES, ClaimVerdict.CONFIRMED),
        (UP, {"isotropic": UP, "gram": DOWN}, SHARES, ClaimVerdict.PARTLY),  # only hidden
        (
            [1.015, 1.0, 1.0, 1.0], {"isotropic": UP, "gram": DOWN},
            {"isotropic": [0.1] * 4, "gram": [0.2] * 4}, ClaimVerdict.CONTRADICTED,
        ),
    ],
)  # fmt: skip
def test_small_columns(changes, leakages, nonzero, expected):
    found = decide("s", **small_columns(changes, leakages, nonzero))
    assert found.verdict is expected
    assert found.values["changed"] == (changes is DOWN)


@pytest.mark.parametrize(
    ("status", "E", "expected"),
    [
        ("stable", 1.0, ClaimVerdict.CONFIRMED),
        ("infinite error", 1.0, ClaimVerdict.UNDECIDED),
        ("infinite error", 5.0, ClaimVerdict.CONTRADICTED),
    ],
)
def test_finite_limit(status, E, expected):
    sizes = (100, 1000)
    one = points([(0.5, 0.2)], lambda row: {"status_limit": status}).filter(law="uniform")
    table = pl.concat(
        one.with_columns(pl.lit(size).cast(pl.Int64).alias("n_features"), pl.lit(value).alias("E"))
        for size, value in zip(sizes, (1.0, E), strict=True)
    )
    theory = pl.DataFrame(
        {
            "design": "isotropic", "status": "stable", "sigma": 0.2, "n_features": sizes,
            "E": (1.0, 4.0),
        }
    )  # fmt: skip
    assert decide("m", tail_points=table, tail_theory=theory).verdict is expected


def correlated(change):
    """Rows like those of `CorrelatedExperiment`, where all agrees and all designs are equal."""
    rows = []
    for law in LAWS:
        for columns in CORRELATIONS:
            for design in ("isotropic", *GRAMS):
                for sigma in (0.05, 0.1):
                    row = {
                        "law": law, "columns": columns, "design": design, "sigma": sigma,
                        "samples": SAMPLES, "exists": SAMPLES, "E": 1.0, "E_se": 0.01,
                        "rho_hat": 0.1, "rho_hat_se": 0.001, "amp_converged": 10,
                        "vamp_converged": SAMPLES, "ratio": 1.0, "ratio_se": 0.01,
                        "ratio_theory": 1.0, "ratio_theory_se": 0.01, "status_theory": "stable",
                        "E_theory": 1.0, "E_theory_se": 0.01, "rho_hat_theory": 0.1,
                        "rho_hat_theory_se": 0.001,
                    }  # fmt: skip
                    row.update(change(row) or {})
                    rows.append(row)
    return pl.DataFrame(rows)


def only(designs, columns=None, **change):
    return lambda row: (
        change if row["design"] in designs and columns in (None, row["columns"]) else None
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (only(GRAMS, ratio=0.5), ClaimVerdict.CONFIRMED),
        (only(("matrix:2",), ratio=0.5), ClaimVerdict.PARTLY),
        (only(("isotropic",), ratio=0.5), ClaimVerdict.CONTRADICTED),
        (only((), ratio=0.5), ClaimVerdict.CONTRADICTED),
    ],
)
def test_stability_of_correlated_columns(change, expected):
    found = decide("n", correlated_points=correlated(change))
    assert found.verdict is expected
    assert found.values["cases"] == 24


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (only(GRAMS, E=0.9), ClaimVerdict.CONFIRMED),
        (only(GRAMS, E=1.1), ClaimVerdict.CONTRADICTED),
        (only((), E=1.0), ClaimVerdict.UNDECIDED),  # no difference at all
        (only(GRAMS[:1], columns="ar:0.5", E=0.9), ClaimVerdict.UNDECIDED),  # few differences
        (only(GRAMS, E=0.9, exists=3), ClaimVerdict.UNDECIDED),  # nothing to compare
    ],
)
def test_error_of_correlated_columns(change, expected):
    assert decide("o", correlated_points=correlated(change)).verdict is expected


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        ({"isotropic": 2.0}, ClaimVerdict.CONFIRMED),
        ({"gram": 2.0, "matrix:2": 2.0}, ClaimVerdict.CONTRADICTED),
        ({"matrix:2": 2.0}, ClaimVerdict.PARTLY),
    ],
)
def test_trade_off_of_correlated_columns(factor, expected):
    sigmas = np.geomspace(0.01, 1.0, 12)
    table = pl.concat(
        pl.DataFrame(
            {
                "law": "lognormal", "columns": columns, "design": design, "lam": 0.2,
                "sigma": sigmas, "status": "stable", "onavekl": 1.0 / sigmas,
                "E": 1.0 + sigmas * factor.get(design, 1.0),
            }
        )
        for columns in CORRELATIONS
        for design in NAMES
    )  # fmt: skip
    assert decide("p", correlated_tradeoff=table).verdict is expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (only((), E=1.0), ClaimVerdict.CONFIRMED),
        (only(GRAMS, rho_hat=0.2), ClaimVerdict.CONTRADICTED),
        (only(("gram",), E=1.2), ClaimVerdict.PARTLY),
    ],
)
def test_extension_to_correlated_columns(change, expected):
    found = decide("q", correlated_points=correlated(change))
    assert found.verdict is expected
    assert found.values["amp"] * 10 == found.values["vamp"]


def test_every_claim_has_a_letter_of_its_own_and_waits_for_its_tables():
    assert len(JUDGES) == len(CLAIMS) == 19
    for claim in CLAIMS:
        assert claim.decide({}).verdict is ClaimVerdict.UNTESTED


def test_the_claims_of_the_paper_are_counted_apart():
    finding = Finding(ClaimVerdict.CONFIRMED, "", {})
    decided = [(claim, finding) for claim in CLAIMS]
    assert [claim.key for claim in CLAIMS if claim.ours] == ["k", "n", "o", "p"]
    said = count_verdicts(decided)
    assert said.startswith("Claims of the paper: 15, of which 15 confirmed.")
    assert said.endswith("Claims that we add: 4, of which 4 confirmed.")
