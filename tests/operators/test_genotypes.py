"""Packed genotypes against the same file decoded by bed-reader."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bed_reader import open_bed, to_bed

import privasso as pv
from privasso.operators import Enclosed, Genotypes, Metered
from privasso.solvers import CoordinateDescent

SHAPES = [(1, 1), (4, 3), (5, 2), (37, 60), (258, 19), (1003, 401)]


def linked_genotypes(m, n, rng, missing):
    """Copies of an allele, NaN where missing; neighbouring columns are alike."""
    frequency = rng.uniform(0.05, 0.5, n)
    copies = np.zeros((m, n))
    for _ in range(2):
        hidden = rng.standard_normal((m, n))
        for j in range(1, n):
            hidden[:, j] = 0.8 * hidden[:, j - 1] + 0.6 * hidden[:, j]
        copies += hidden < np.quantile(hidden, frequency)
    copies[rng.uniform(size=(m, n)) < missing] = np.nan
    return copies


def write(path: Path, copies: np.ndarray) -> Path:
    to_bed(path, copies)
    return path


def scaled(path: Path, scaling: str) -> np.ndarray:
    """The matrix, decoded by bed-reader and scaled by NumPy."""
    with open_bed(path) as bed:
        F = bed.read(dtype="float64")
    known = ~np.isnan(F)
    mean = np.array([F[k, j].mean() if k.any() else 0.0 for j, k in enumerate(known.T)])
    F = np.where(known, F, mean)
    if scaling == "none":
        return F
    F = F - mean
    F[:, np.ptp(F, axis=0) < 1e-12] = 0.0
    spread = F.std(axis=0)
    return F / np.where(spread > 0, spread, 1.0) if scaling == "standard" else F


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A file with missing genotypes, a constant column and one that is missing everywhere."""
    rng = np.random.default_rng(0)
    copies = linked_genotypes(403, 150, rng, 0.03)
    copies[:, 7], copies[:, 8], copies[:, 9] = 2.0, np.nan, 1.0
    copies[::3, 9] = np.nan
    copies[:, 20:40] = np.nan_to_num(copies[:, 20:40])
    path = write(tmp_path_factory.mktemp("study") / "study.bed", copies)
    y = scaled(path, "standard")[:, [3, 30, 31, 90]] @ [1.0, -0.8, 0.5, 0.3]
    return path, y + rng.standard_normal(403)


@pytest.mark.parametrize("scaling", ["standard", "centre", "none"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_products_are_those_of_the_decoded_matrix(tmp_path, shape, scaling, missing):
    m, n = shape
    rng = np.random.default_rng(m)
    path = write(tmp_path / "some.bed", linked_genotypes(m, n, rng, missing))
    F, op = scaled(path, scaling), Genotypes.open(path, scaling=scaling)
    x, g, h = rng.standard_normal(n), rng.standard_normal(m), rng.standard_normal(m)
    x[rng.uniform(size=n) < 0.3] = 0.0
    close: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-11 * (m + n)}
    assert op.shape == shape
    np.testing.assert_allclose(op.toarray(), F, **close)
    np.testing.assert_allclose(op.matvec(x), F @ x, **close)
    np.testing.assert_allclose(op.rmatvec(g), F.T @ g, **close)
    for got, vector in zip(op.pair_rmatvec(g, h), (g, h), strict=True):
        np.testing.assert_allclose(got, F.T @ vector, **close)
    squares, product = op.squares_and_rmatvec(g)
    np.testing.assert_allclose(squares, (F**2).sum(axis=0), **close)
    np.testing.assert_allclose(product, F.T @ g, **close)
    np.testing.assert_allclose(op.column_squares(), squares)
    np.testing.assert_allclose(op.gram(), F.T @ F, **close)
    X, G = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
    np.testing.assert_allclose(op.matmat(X), F @ X, **close)
    np.testing.assert_allclose(op.rmatmat(G), F.T @ G, **close)
    updated, product = h.copy(), 0.3 * h - 0.7 * (F @ x)
    take = np.arange(0, n, 2)
    fitted, cut = op.update(x, updated, 0.3, -0.7, take=take)
    np.testing.assert_allclose(updated, product, **close)
    np.testing.assert_allclose(fitted, F.T @ product, **close)
    assert cut is not None
    np.testing.assert_allclose(cut, F[:, take], **close)
    np.testing.assert_allclose(op.rows(slice(0, m, 2)), F[::2], **close)
    np.testing.assert_allclose(op.rows(np.arange(m)[::-3]), F[::-3], **close)
    np.testing.assert_allclose(op.single(), F, atol=1e-5)


def test_packed_columns_multiply_as_they_are(study, monkeypatch):
    path, _ = study
    F, op = scaled(path, "standard"), Genotypes.open(path)
    rng = np.random.default_rng(1)
    left, right = rng.permutation(150)[:70], rng.permutation(150)[:30]
    monkeypatch.setattr("privasso.operators._genotypes._TILE", 64 * 101)  # several tiles
    a, b = op.working_columns(left), op.working_columns(right)
    close: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-9}
    np.testing.assert_allclose(a.gram(), F[:, left].T @ F[:, left], **close)
    np.testing.assert_allclose(a.cross(b), F[:, left].T @ F[:, right], **close)
    both, keep = a.joined(b), np.array([0, 5, 80])
    assert both.shape == (403, 100)
    chosen = np.concatenate([left, right])[keep]
    np.testing.assert_allclose(both.taken(keep).gram(), F[:, chosen].T @ F[:, chosen], **close)
    x = rng.standard_normal(70)
    np.testing.assert_allclose(a.matvec(x), F[:, left] @ x, **close)


def test_exact_products_lie_in_the_enclosures(study):
    path, y = study
    op = Genotypes.open(path)
    F, x = op.toarray(), np.zeros(150)
    x[[3, 8, 50, 149]] = [1.0, 1.0, -1e-7, 1e8]
    found, back = op.matvec_enclosed(x), op.rmatvec_enclosed(Enclosed.exactly(y))
    for enclosure, A, v, at in ((found, F, x, (0, 200, 402)), (back, F.T, y, (0, 8, 60))):
        for i in at:
            terms = zip(A[i], v, strict=True)
            exact = sum((Fraction(float(a)) * Fraction(float(b)) for a, b in terms), Fraction(0))
            value = Fraction(float(enclosure.value[i])) + Fraction(float(enclosure.low[i]))
            assert abs(value - exact) <= Fraction(float(enclosure.error[i]))
        assert enclosure.error.max() < 1e-15 * (1 + np.abs(enclosure.value).max())


def violation(F, y, lam, x, eta=0.0):
    c = F.T @ (y - F @ x) - eta
    off = np.where(x != 0, np.abs(c - lam * np.sign(x)), np.maximum(np.abs(c) - lam, 0.0))
    return off.max() / lam


@pytest.mark.parametrize("scaling", ["standard", "none"])
def test_a_path_is_that_of_the_decoded_matrix(study, scaling):
    path, y = study
    F, op = scaled(path, scaling), Genotypes.open(path, scaling=scaling)
    lams = np.abs(F.T @ y).max() * np.geomspace(1, 0.02, 8)
    found = pv.solve_path(op, y, lams)
    assert all(status is pv.Status.CONVERGED for status in found.status)
    assert found.gap.max() < 1e-8 * float(y @ y)
    for lam, x in zip(lams, found.x.T, strict=True):
        assert violation(F, y, lam, x) < 2e-8
    np.testing.assert_allclose(found.x, pv.solve_path(F, y, lams).x, atol=1e-7)


def test_a_solve_with_noise_keeps_columns_packed(study, monkeypatch):
    path, y = study
    op, F = Genotypes.open(path), scaled(path, "standard")
    eta = 2.0 * np.random.default_rng(2).standard_normal(150) * np.linalg.norm(F, axis=0) / 20
    lam = 0.05 * np.abs(F.T @ y).max()

    def refuse(self, take):
        raise AssertionError("columns were unpacked")

    monkeypatch.setattr(Genotypes, "columns", refuse)
    for method in ("auto", CoordinateDescent()):
        solution = pv.solve(op, y, lam, eta, method=method)
        assert solution.status is pv.Status.CONVERGED
        assert violation(F, y, lam, solution.x, eta) < 2e-8
    many = pv.solve_many(op, y, [lam, 3 * lam], np.stack([eta, -eta], axis=1))
    assert violation(F, y, 3 * lam, many.x[:, 1], -eta) < 2e-8


def test_the_counted_allele_and_missing_values_are_those_of_the_reader(study):
    path, _ = study
    op = Genotypes.open(path)
    with open_bed(path) as bed:
        raw = bed.read(dtype="float64")
    assert op.mean[8] == 0.0
    rest = np.arange(150) != 8
    np.testing.assert_allclose(op.mean[rest], np.nanmean(raw[:, rest], axis=0))
    assert op.deviation[7] == op.deviation[9] == 0.0
    np.testing.assert_array_equal(op.column_squares()[[7, 8, 9]], 0.0)


def test_reading_is_counted(study):
    path, y = study
    op = Metered(Genotypes.open(path))
    x = np.zeros(150)
    x[:15] = 1.0
    op.matvec(x)
    assert op.passes == pytest.approx(0.1)
    assert op.packed
    assert pv.solve(op, y, 100.0).n_passes > 0


def broken(name: str, content: bytes) -> bytes:
    return {
        "magic": b"\x6c\x1c" + content[2:],
        "empty": b"",
        "short header": content[:2],
        "person by person": content[:2] + b"\x00" + content[3:],
        "truncated": content[:-1],
        "too long": content + b"\x00",
    }[name]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("magic", "first two bytes"),
        ("empty", "first two bytes"),
        ("short header", "first two bytes"),
        ("person by person", "plink --make-bed"),
        ("truncated", "not complete"),
        ("too long", "not complete"),
    ],
)
def test_damaged_files_are_refused(tmp_path, name, sentence):
    path = write(tmp_path / "some.bed", np.zeros((9, 4)))
    path.write_bytes(broken(name, path.read_bytes()))
    with pytest.raises(ValueError, match=sentence):
        Genotypes.open(path)


def test_files_without_people_or_variants_are_refused(tmp_path):
    path = write(tmp_path / "some.bed", np.zeros((9, 4)))
    assert Genotypes.open(path, shape=(9, 4)).shape == (9, 4)
    with pytest.raises(ValueError, match="not complete"):
        Genotypes.open(path, shape=(8, 4))
    with pytest.raises(ValueError, match="both must be there"):
        Genotypes.open(path, shape=(0, 4))
    path.with_suffix(".fam").unlink()
    with pytest.raises(ValueError, match="pass shape"):
        Genotypes.open(path)


def test_wrong_arguments_are_refused():
    packed = np.zeros((2, 3), dtype=np.uint8)
    with pytest.raises(ValueError, match="scaling"):
        Genotypes(packed, 9, scaling="unit")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="uint8"):
        Genotypes(packed.astype(float), 9)
    with pytest.raises(ValueError, match="take 4 bytes"):
        Genotypes(packed, 13)
    with pytest.raises(ValueError, match="no genotypes"):
        Genotypes(packed[:0], 9)


def test_scaled_copies_by_hand():
    """Two people with one copy, one with two, and one who is missing."""
    op = Genotypes(np.array([[0b01_00_10_10]], dtype=np.uint8), 4, scaling="centre")
    assert op.mean == pytest.approx([4 / 3])
    assert op.toarray()[:, 0] == pytest.approx([-1 / 3, -1 / 3, 2 / 3, 0.0])
    assert op.column_squares() == pytest.approx([6 / 9])


def test_the_gram_matrix_of_packed_columns_by_hand():
    packed = np.array([[0b00_10_11], [0b11_01_00]], dtype=np.uint8)
    op = Genotypes(packed, n_rows=3, scaling="none")  # columns (0, 1, 2) and (2, mean, 0)
    assert op.working_columns(np.array([0, 1])).gram().tolist() == [[5.0, 1.0], [1.0, 5.0]]
