"""Cells that are missing, infinite or extreme: no formal fit is refused for them.

A record without a label is not read at all: whatever its covariates are, the fit is the same to
the last bit.
"""

import numpy as np
import pytest
import scipy.sparse as sp

import privasso as pv
from privasso.blocks import RowBlocks, Variants, variants_of

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")

M, N = 60, 4
NAN, INF = np.nan, np.inf
CELLS = (NAN, INF, -INF, 1e308, -1e308, -0.0, 5e-324, 1e-310)
BOUNDS = [(0.0, 2.0), (-1.0, 2.0), (1.0, 1.0), (0.0, 2.0)]


def blocks(X, y):
    return RowBlocks.of_arrays(X, y, n_parts=4), None


def genotypes(X, y):
    """Copies of an allele in two bits; whatever is neither 0, 1 nor 2 is missing."""
    codes = np.select([X == 0.0, X == 1.0, X == 2.0], [3, 2, 0], 1).astype(np.uint8)
    packed = sum(codes[k::4].T << (2 * k) for k in range(4))
    F = Variants(np.ascontiguousarray(packed, np.uint8), M, np.ones(N))
    return variants_of(F, np.asarray(y, dtype=float)), None


STORED = {
    "array": lambda X, y: (X, y),
    "fortran": lambda X, y: (np.asfortranarray(X), y),
    "float32": lambda X, y: (X.astype(np.float32), y),
    "csr": lambda X, y: (sp.csr_array(X), y),
    "csc": lambda X, y: (sp.csc_array(X), y),
    "blocks": blocks,
    "genotypes": genotypes,
}


def linear(screen=None, fit_intercept=True, **settings):
    given = {"bounds": BOUNDS, "y_bounds": (0.0, 2.0), "level": True, **settings}
    privacy = pv.RecordDP(2.0, 1e-3, **given)
    return pv.PrivateLasso(
        privacy=privacy, screen=screen, fit_intercept=fit_intercept, random_state=0
    )


def logistic(**settings):
    privacy = pv.RecordDP(2.0, 1e-3, **{"bounds": BOUNDS, "y_bounds": (0, 1), **settings})
    return pv.PrivateLogisticLasso(privacy=privacy, random_state=0)


#: Fits of whole records, each with the storages that it takes.
DENSE, ALL = ("array", "fortran", "float32"), tuple(STORED)
RECORDS = {
    "objective": (linear(), (*DENSE, "blocks", "genotypes")),
    "through zero": (linear(fit_intercept=False), ("array", "blocks")),
    "large kappa": (linear(kappa=2.0**11), ("array",)),
    "private bounds": (linear(bounds="private"), DENSE),
    "private scales": (linear(scales="private"), DENSE),
    "both": (linear(bounds="private", scales="private"), ("array",)),
    "private shape": (linear(shape="private"), ("array",)),
    "public shape": (linear(shape=np.eye(N)), ("array",)),
    "statistics": (linear(mechanism="statistics", level=None), ("array",)),
    "logistic": (logistic(), DENSE),
    "logistic, both": (logistic(bounds="private", scales="private"), ("array",)),
    "screened": (linear(2), ALL),
    "screened through zero": (linear(2, fit_intercept=False), ("array", "csr", "blocks")),
    "screened, alike": (linear(2, bounds=(0.0, 2.0)), ("array", "csr", "csc", "blocks")),
}
#: Fits of labels, whose covariates are public.
LABEL_DP = pv.LabelDP(2.0, 1e-3, (0.0, 2.0))
RELEASE = pv.LabelDP(2.0, 1e-3, (0.0, 2.0), "release")
BINARY = pv.LabelDP(2.0, 1e-3, (0, 1))
LABELS = {
    "labels": (pv.PrivateLasso(privacy=LABEL_DP, random_state=0), ("array", "csr", "blocks")),
    "products": (pv.PrivateLasso(privacy=RELEASE, random_state=0), ("array", "csr", "blocks")),
    "labels, screened": (pv.PrivateLasso(privacy=LABEL_DP, screen=2, random_state=0), ("array",)),
    "labels, logistic": (pv.PrivateLogisticLasso(privacy=BINARY, random_state=0), ("array", "csr")),
}


def cases(fits, *quick):
    """All fits and their storages; all but those that are named are in the slow tier.

    The quick tests of `tests/privacy/test_sensitivity.py` run the mechanisms of all of them on such
    cells.
    """
    found = [(name, storage) for name, (_, storages) in fits.items() for storage in storages]
    return [
        case if " ".join(case) in quick else pytest.param(*case, marks=pytest.mark.slow)
        for case in found
    ]


def table():
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, (M, N)).astype(np.float64), rng.integers(0, 2, M).astype(np.float64)


def model(fits, name, storage, X, y):
    """What a fit publishes, as bytes."""
    with np.errstate(over="ignore"):  # in single precision the largest numbers are infinite
        data = STORED[storage](X, y)
    est = fits[name][0].fit(*data)
    found = np.append(np.ravel(est.coef_), est.intercept_)
    assert np.isfinite(found).all()
    return found.tobytes()


@pytest.mark.parametrize(
    ("name", "storage"),
    cases(
        RECORDS, "objective array", "objective blocks", "both array", "private shape array",
        "statistics array", "logistic, both array", "screened csr", "screened genotypes",
    ),
)  # fmt: skip
def test_odd_cells_and_labels_are_fitted(name, storage):
    X, y = table()
    for k, cell in enumerate(CELLS):
        X[k, k % N], X[k + 10], y[k + 20] = cell, cell, cell
    model(RECORDS, name, storage, X, y)


@pytest.mark.parametrize(
    ("name", "storage"), cases(LABELS, "labels blocks", "labels, logistic array")
)
def test_odd_labels_are_fitted(name, storage):
    X, y = table()
    y[: len(CELLS)] = CELLS
    model(LABELS, name, storage, X, y)


@pytest.mark.parametrize(
    ("name", "storage"), cases(RECORDS, "both array", "logistic, both array", "screened blocks")
)
def test_a_record_without_a_label_is_not_read(name, storage):
    X, y = table()
    y[[0, 7, M - 1]] = NAN
    found = set()
    for cells in ((0.0, 2.0, 1.0, 1.0), (INF, -INF, NAN, 5e-324)):
        X[[0, 7, M - 1]] = cells
        found.add(model(RECORDS, name, storage, X, y))
    assert len(found) == 1
    y[7] = 1.0
    assert model(RECORDS, name, storage, X, y) not in found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "storage"), cases(RECORDS | LABELS))
@pytest.mark.parametrize("place", [0, M - 1])
def test_each_odd_cell_and_label_alone(name, storage, place):
    fits = {**RECORDS, **LABELS}
    for cell in CELLS:
        X, y = table()
        y[place] = cell
        model(fits, name, storage, X, y)
        if name in RECORDS:
            X[place] = cell
            model(fits, name, storage, X, y)
            y[place] = 1.0
            model(fits, name, storage, X, y)


def test_covariates_of_other_kinds_of_privacy_are_refused():
    X, y = table()
    X[3, 1] = NAN
    for privacy in (LABEL_DP, pv.OnAverage(0.1)):
        with pytest.raises(ValueError, match="NaN"):
            pv.PrivateLasso(1.0, privacy).fit(X, y)
    with pytest.raises(ValueError, match="X must be finite"):
        pv.PrivateLasso(1.0, LABEL_DP).fit(RowBlocks.of_arrays(X, y))
    est = linear().fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        est.predict(X)


def test_masked_cells_are_missing_ones():
    X, y = table()
    hidden = np.ma.masked_array(X, mask=X == 2.0)
    privacy = linear().privacy
    assert privacy is not None
    options = pv.fit.FitOptions(privacy)
    one, two = (
        pv.fit.plan_for(data, options, seeded=True).release(y, rng=np.random.default_rng(0)).solve()
        for data in (hidden, np.where(X == 2.0, NAN, X))
    )
    assert one.coef.tolist() == two.coef.tolist()
