"""Private fits of genotypes: those of the same numbers in plain arrays."""

import numpy as np
import pytest
from bed_reader import to_bed

import privasso as pv
from privasso.accounting import ChoiceLoss
from privasso.blocks import RowBlocks, read_bed
from privasso.programs import Screening
from privasso.programs._associations import ENTRY, LABEL, IntegerColumns
from privasso.programs._records import half_ranges
from privasso.queries import Answering, bit_source

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
M, N = 1203, 300
#: Tables are read by rows, or handed on as those with many variants are.
BOTH_WAYS = pytest.mark.parametrize("narrow", [1, 4096])
FITS = pytest.mark.parametrize(
    ("screen", "narrow"),
    [(3, 1), (3, 4096), (None, 1), pytest.param(None, 4096, marks=pytest.mark.slow)],
)


def copies(missing=0.02):
    """Copies of an allele, NaN where missing, and labels that depend on three columns."""
    rng = np.random.default_rng(0)
    raw = rng.binomial(2, rng.uniform(0.1, 0.9, N), (M, N)).astype(float)
    y = 0.5 + 0.2 * (raw[:, [3, 30, 299]] @ [1.0, -1.0, 0.7]) + 0.1 * rng.standard_normal(M)
    raw[rng.random((M, N)) < missing] = np.nan
    return raw, np.clip(y, -0.5, 1.5)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    raw, y = copies()
    path = tmp_path_factory.mktemp("study") / "study.bed"
    to_bed(path, raw, properties={"pheno": y.tolist(), "sid": [f"rs{k}" for k in range(N)]})
    return path, raw, y


@pytest.fixture
def cut(monkeypatch, narrow):
    """Blocks of few rows or columns, and the width from which a table is not read by rows."""
    for name, value in (("_NARROW", narrow), ("_CHUNK", 1 << 13), ("_PART", 1 << 15)):
        monkeypatch.setattr(f"privasso.blocks._bed.{name}", value)


def records(screen=None, bounds=(0, 2), **options):
    privacy = pv.RecordDP(3.0, 1e-6, bounds=bounds, y_bounds=(-0.5, 1.5))
    return pv.PrivateLasso(privacy=privacy, screen=screen, random_state=1, **options)


def sums(columns, table, labels):
    """Σ k·ℓ over the blocks of a table."""
    parts, at = [], 0
    for X, y in table.engine.chunks():
        parts.append(columns.products(X, labels[at : at + len(y)]))
        at += len(y)
    return np.sum(parts, axis=0)


@BOTH_WAYS
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("missing", [1.0, 0.25, "each"])
@pytest.mark.parametrize("bounds", [(0, 2), (0, 1), (1, 2), (-1, 1.5), "each"])
@pytest.mark.usefixtures("cut")
def test_sums_are_exact(study, centred, missing, bounds):
    """Integers of each entry by itself, from the file as bed-reader wrote it."""
    path, raw, _ = study
    rng = np.random.default_rng(5)
    fill = rng.uniform(0, 2, N) if missing == "each" else missing
    pairs = np.tile(bounds if bounds != "each" else (0.0, 0.0), (N, 1)).astype(float)
    if bounds == "each":
        pairs = np.sort(rng.uniform(-1, 3, (N, 2)), axis=1)
        pairs[7] = 1.0  # a column that cannot vary
    labels = rng.integers(-LABEL, LABEL + 1, M)
    table = read_bed(path, missing=fill)
    for described in (pairs, pairs[:1])[: 1 if bounds == "each" else 2]:
        columns = IntegerColumns.within(described, *half_ranges(described, centred))
        X = np.clip(np.where(np.isnan(raw), fill, raw), *described.T)
        unit = np.where(columns.unit > 0, columns.unit, np.inf)
        k = np.rint((X - columns.origin) * (ENTRY / unit)).astype(np.int64)
        found = sums(columns, table, labels)
        assert found.dtype == np.int64
        assert (found == labels @ k).all()


@BOTH_WAYS
@pytest.mark.usefixtures("cut")
def test_the_choice_is_that_of_small_integers(study):
    path, _, y = study
    raw, _ = copies(missing=0.0)
    whole = path.with_name("whole.bed")
    to_bed(whole, raw)
    tables = read_bed(whole, y), *(RowBlocks.of_arrays(X, y) for X in (raw.astype(np.int8), raw))
    screening = Screening(ChoiceLoss(0.5, 5), 0.1, 0.1, np.tile([0.0, 2.0], (N, 1)), (-1, 2), True)
    for seed in range(5):
        found = [
            screening.choose(Answering(one, bit_source(np.random.default_rng(seed)))).tolist()
            for one in tables
        ]
        assert found[0] == found[1] == found[2]


@FITS
@pytest.mark.usefixtures("cut")
def test_fits_of_records_are_those_of_an_array(study, screen):
    path, raw, y = study
    X = np.where(np.isnan(raw), 1.0, raw)
    plain = records(screen).fit(X, y)
    for given, labels in ((str(path), "pheno"), (path, y), (read_bed(path), None)):
        fit = records(screen).fit(given, labels)
        np.testing.assert_array_equal(fit.coef_, plain.coef_)
        assert fit.intercept_ == plain.intercept_
        assert fit.guarantee_ == plain.guarantee_
        np.testing.assert_allclose(fit.predict(given), plain.predict(X), atol=1e-12)
        assert fit.score(given, y if labels is None else labels) == pytest.approx(plain.score(X, y))
        assert fit.n_features_in_ == N
        assert fit.feature_names_in_.tolist() == [f"rs{k}" for k in range(N)]
    if screen == 3:
        assert set(plain.screened_) <= {3, 30, 299}


def test_a_record_changes_its_own_entries_alone(study):
    """What is missing in one record does not depend on the others."""
    path, raw, _ = study
    bounds = np.tile([0.0, 2.0], (N, 1))
    columns = IntegerColumns.within(bounds, *half_ranges(bounds, True))
    labels = np.random.default_rng(0).integers(-LABEL, LABEL + 1, M)
    other, changed = path.with_name("other.bed"), labels.copy()
    empty = raw.copy()
    empty[5], changed[5] = np.nan, 0  # another record at this place, with an empty label
    to_bed(other, empty)
    one, two = (
        sums(columns, read_bed(p, np.zeros(M)), ell)
        for p, ell in ((path, labels), (other, changed))
    )
    assert np.max(np.abs(one - two)) <= ENTRY * abs(labels[5])


@FITS
@pytest.mark.usefixtures("cut")
def test_fits_of_labels_are_those_of_an_array(study, screen):
    """A missing public genotype is the mean of its column."""
    path, raw, y = study
    means = np.array(
        [sum(x for x in column if x == x) / sum(x == x for x in column) for column in raw.T]
    )
    X = np.where(np.isnan(raw), means, raw)
    privacy = pv.LabelDP(3.0, 1e-6, y_bounds=(-0.5, 1.5))
    options = {"privacy": privacy, "screen": screen, "random_state": 1}
    first = pv.PrivateLasso(**options).fit(path, y)
    plain = pv.PrivateLasso(**options).fit(X, y)
    np.testing.assert_array_equal(first.coef_, plain.coef_)
    np.testing.assert_allclose(first.predict(path), plain.predict(X), atol=1e-12)


def test_a_choice_of_which_nothing_is_gained(study):
    """Where a fit of all columns is better, it is made."""
    path, raw, y = study
    few = path.with_name("few.bed")
    to_bed(few, raw[:, [3, 30, 40]], properties={"pheno": y.tolist()})
    assert not hasattr(records("auto").fit(few, "pheno"), "screened_")


def test_a_release_is_solved_again_with_the_file(study):
    path, _, y = study
    privacy = pv.LabelDP(3.0, 1e-6, y_bounds=(-0.5, 1.5), mechanism="release")
    est = pv.PrivateLasso(privacy=privacy, random_state=1).fit(path, y)
    lam = 2 * est.lam_
    coef = est.refit(path, lam).coef_
    np.testing.assert_allclose(est.path(path, [lam]).coef[:, 0], coef, atol=1e-6)


def test_what_cannot_be_done_says_so(study):
    path, _, y = study
    with pytest.raises(ValueError, match="sixth column of the"):
        records(3).fit(path, "weight")
    for missing, said in ((3, "from 0 to 2"), ([1.0, 2.0], "one for each of 300")):
        with pytest.raises(ValueError, match=said):
            read_bed(path, missing=missing)
    with pytest.raises(ValueError, match="each of the 1203 rows"):
        read_bed(path, y[:-1])
    logistic = pv.PrivateLogisticLasso(privacy=pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1)))
    with pytest.raises(TypeError):
        logistic.fit(read_bed(path), y > 0.5)
    fit = records(3).fit(path, y)
    few = path.with_name("less.bed")
    to_bed(few, np.zeros((10, 3)))
    with pytest.raises(ValueError, match="and the fit had 300"):
        fit.predict(few)
    names = path.with_suffix(".bim").read_text()
    path.with_suffix(".bim").write_text(names.replace("rs7\t", "rs8\t"))
    with pytest.raises(ValueError, match="names two variants 'rs8'"):
        records(3).fit(path, y)
    path.with_suffix(".bim").write_text(names.replace("rs7\t", "other\t"))
    with pytest.raises(ValueError, match="other columns than the fit"):
        fit.predict(path)
    path.with_suffix(".bim").write_text(names)
