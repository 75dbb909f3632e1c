"""Private fits of packed genotypes: those of the same numbers in plain arrays."""

import numpy as np
import pytest
from bed_reader import to_bed

import privasso as pv
from privasso.accounting import ChoiceLoss
from privasso.blocks import RowBlocks
from privasso.operators import Genotypes
from privasso.programs import Screening
from privasso.programs._associations import ENTRY, LABEL, IntegerColumns
from privasso.programs._estimate import half_ranges
from privasso.queries import Answering, bit_source

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
M, N = 1203, 300


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


def records(screen=None, bounds=(0, 2), **options):
    privacy = pv.RecordDP(3.0, 1e-6, bounds=bounds, y_bounds=(-0.5, 1.5))
    return pv.PrivateLasso(privacy=privacy, screen=screen, random_state=1, **options)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("missing", [1.0, 0.25, "each"])
@pytest.mark.parametrize("bounds", [(0, 2), (0, 1), (0, 3), (1, 2), (-1, 1.5), "each"])
def test_sums_of_packed_columns_are_exact(study, centred, missing, bounds):
    """Integers of each entry by itself, from the file as bed-reader wrote it."""
    path, raw, _ = study
    rng = np.random.default_rng(5)
    fill = rng.uniform(0, 2, N) if missing == "each" else missing
    pairs = np.tile(bounds if bounds != "each" else (0.0, 0.0), (N, 1)).astype(float)
    if bounds == "each":
        pairs = np.sort(rng.uniform(-1, 3, (N, 2)), axis=1)
        pairs[7] = 1.0  # a column that cannot vary
    labels = rng.integers(-LABEL, LABEL + 1, M)
    F = Genotypes.open(path, scaling="none", missing=fill)
    for described in (pairs, pairs[:1])[: 1 if bounds == "each" else 2]:
        columns = IntegerColumns.within(described, *half_ranges(described, centred))
        X = np.clip(np.where(np.isnan(raw), fill, raw), *described.T)
        unit = np.where(columns.unit > 0, columns.unit, np.inf)
        k = np.rint((X - columns.origin) * (ENTRY / unit)).astype(np.int64)
        exact = [
            int(sum(int(a) * int(b) for a, b in zip(k[:, j], labels, strict=True)))
            for j in range(0, N, 37)
        ]
        found = columns.products(F, labels)
        assert found.dtype == np.int64
        assert found[::37].tolist() == exact
        assert (found == labels @ k).all()


def test_the_choice_is_that_of_small_integers(study):
    path, _, y = study
    raw, _ = copies(missing=0.0)
    whole = path.with_name("whole.bed")
    to_bed(whole, raw)
    F = Genotypes.open(whole, scaling="none", missing=1.0)
    screening = Screening(ChoiceLoss(0.5, 5), 0.1, 0.1, np.tile([0.0, 2.0], (N, 1)), (-1, 2), True)
    for seed in range(5):
        found = [
            screening.choose(
                Answering(RowBlocks.of_arrays(X, y), bit_source(np.random.default_rng(seed)))
            ).tolist()
            for X in (F, raw.astype(np.int8), raw)
        ]
        assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("screen", [3, None])
def test_fits_of_records_are_those_of_the_decoded_matrix(study, screen):
    path, raw, y = study
    X = np.where(np.isnan(raw), 1.0, raw)
    plain = records(screen).fit(X, y)
    F = Genotypes.open(path, scaling="none", missing=1.0)
    for given, labels in ((str(path), "pheno"), (F, y)):
        fit = records(screen).fit(given, labels)
        np.testing.assert_array_equal(fit.coef_, plain.coef_)
        assert fit.intercept_ == plain.intercept_
        assert fit.guarantee_ == plain.guarantee_
        np.testing.assert_allclose(fit.predict(given), plain.predict(X), atol=1e-12)
        assert fit.score(given, labels) == pytest.approx(plain.score(X, y))
        assert fit.n_features_in_ == N
        if given is not F:
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
        columns.products(Genotypes.open(p, scaling="none", missing=1.0), ell)
        for p, ell in ((path, labels), (other, changed))
    )
    assert np.max(np.abs(one - two)) <= ENTRY * abs(labels[5])


def test_means_of_private_genotypes_are_refused(study):
    path, _, y = study
    for F in (Genotypes.open(path), Genotypes.open(path, scaling="none")):
        for screen in (None, 3):
            with pytest.raises(ValueError, match="would reveal something about the records"):
                records(screen).fit(F, y)


@pytest.mark.parametrize("screen", [3, None])
def test_fits_of_labels_are_those_of_the_decoded_matrix(study, screen):
    path, raw, y = study
    privacy = pv.LabelDP(3.0, 1e-6, y_bounds=(-0.5, 1.5))
    X = np.where(np.isnan(raw), np.nanmean(raw, axis=0), raw)
    options = {"privacy": privacy, "screen": screen, "random_state": 1}
    first = pv.PrivateLasso(**options).fit(path, y)
    if screen is None:  # as for any blocks of rows
        plain = pv.PrivateLasso(**options).fit(pv.blocks.RowBlocks.of_arrays(X, y))
    else:
        plain = pv.PrivateLasso(**options).fit(X, y)
        assert (first.screened_ == plain.screened_).all()
    np.testing.assert_allclose(first.coef_, plain.coef_, atol=1e-5)
    np.testing.assert_allclose(first.predict(path), X @ first.coef_ + first.intercept_, atol=1e-12)


def test_what_cannot_be_done_says_so(study):
    path, _, y = study
    with pytest.raises(ValueError, match="sixth column of the"):
        records(3).fit(path, "weight")
    logistic = pv.PrivateLogisticLasso(privacy=pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1)))
    with pytest.raises(ValueError, match="fitted by PrivateLasso"):
        logistic.fit(Genotypes.open(path), y > 0.5)
    fit = records(3).fit(path, y)
    with pytest.raises(ValueError, match="and the fit had 300"):
        fit.predict(Genotypes(np.zeros((2, 3), dtype=np.uint8), 10))
    names = path.with_suffix(".bim").read_text()
    path.with_suffix(".bim").write_text(names.replace("rs7\t", "rs8\t"))
    with pytest.raises(ValueError, match="names two variants 'rs8'"):
        records(3).fit(path, y)
    path.with_suffix(".bim").write_text(names.replace("rs7\t", "other\t"))
    with pytest.raises(ValueError, match="other columns than the fit"):
        fit.predict(path)
    path.with_suffix(".bim").write_text(names)
