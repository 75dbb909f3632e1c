"""Sparse tables from files that anndata and scipy wrote."""

import gzip
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.io import mmwrite

import privasso as pv
from cell_tables import M, N, ages, cells, counts
from privasso.blocks import _cells, read_sparse

FILE = Path(__file__).with_name("cells.h5ad")
GENES = tuple(f"gene{j}" for j in range(N))


@pytest.fixture
def path(tmp_path):
    """The file that anndata wrote."""
    return Path(shutil.copy(FILE, tmp_path))


@pytest.mark.parametrize("layer", [None, "csc", "dense", "double", "counts"])
def test_every_storage_is_read_as_anndata_wrote_it(path, layer, monkeypatch):
    monkeypatch.setattr(_cells, "_CHUNK", 50)  # several chunks
    table = read_sparse(path, "age", layer=layer)
    np.testing.assert_array_equal(table.X.toarray(), counts())
    assert table.X.dtype == (np.float64 if layer in ("double", "counts") else np.float32)
    assert table.X.format == ("csc" if layer == "csc" else "csr")
    assert table.names == GENES
    np.testing.assert_array_equal(table.y, ages())
    dense, y = counts().astype(float), ages()
    lam = 0.3 * np.abs(dense.T @ y).max()
    found, expected = pv.solve(table.X, y, lam), pv.solve(dense, y, lam)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-7)


def test_labels_in_obs(path):
    visits = read_sparse(path, "visits").y
    np.testing.assert_array_equal(np.isnan(visits), np.arange(M) % 7 == 0)
    with pytest.raises(ValueError, match=r"'kind' .* does not hold numbers"):
        read_sparse(path, "kind")
    with pytest.raises(ValueError, match="no column 'weight' in obs"):
        read_sparse(path, "weight")
    with pytest.raises(ValueError, match="no matrix layers/none"):
        read_sparse(path, layer="none")


def test_market_files(tmp_path):
    path = tmp_path / "counts.mtx"
    mmwrite(path, sp.csr_array(counts()))
    np.testing.assert_array_equal(read_sparse(path).X.toarray(), counts())
    with pytest.raises(ValueError, match="labels as an array"):
        read_sparse(path, "age")
    for other in (sp.coo_array(np.eye(3) * 1j), sp.coo_array(np.eye(3)), np.ones((3, 2))):
        mmwrite(path, other)  # complex, symmetric, dense
        with pytest.raises(ValueError, match="must be a general matrix of real numbers"):
            read_sparse(path)
    head = "%%MatrixMarket matrix coordinate real general\n"
    for content in ("", "a,b\n", head, head + "%\n", head + "2 2\n", head + "0 2 1\n1 1 1\n"):
        path.write_text(content)
        with pytest.raises(ValueError, match="cannot be read"):
            read_sparse(path)
    for size in ("999999999999 2", "2 999999999999"):
        path.write_text(f"{head}{size} 1\n1 1 5\n")
        with pytest.raises(ValueError, match="more rows or columns than a file of its size"):
            read_sparse(path)
    path = tmp_path / "counts.mtx.gz"
    for content in (b"no gzip", gzip.compress(head.encode() + b"2 2 1\n1 1 1\n")[:-12]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="cannot be read"):
            read_sparse(path)


@pytest.mark.parametrize("damage", ["text", "indptr", "shape", "names", "no X"])
def test_damaged_files_are_refused(path, damage):
    if damage == "text":
        path.write_text("gene,cell\n")
    else:
        with h5py.File(path, "r+") as opened:
            file: Any = opened
            if damage == "indptr":
                file["X/indptr"][5] = 10**6
            elif damage == "shape":
                file["X"].attrs["shape"] = [M + 1, N]
            elif damage == "names":
                del file["var"]
            else:
                del file["X"]
    with pytest.raises(ValueError, match=r"cells\.h5ad"):
        read_sparse(path)


def test_files_of_another_kind_or_that_are_missing(tmp_path):
    with pytest.raises(ValueError, match="says how to read it"):
        read_sparse(tmp_path / "some.csv")
    for name in ("some.h5ad", "some.mtx"):
        with pytest.raises(FileNotFoundError, match=name):
            read_sparse(tmp_path / name)


class AnnData(SimpleNamespace):
    """What is used of the class of anndata; `test_objects_of_anndata` has the real one."""

    def __getitem__(self, at):
        columns = np.arange(N)[at[1]]
        names = [self.var_names[j] for j in columns]
        return AnnData(X=self.X[:, columns], obs=self.obs, var_names=names)


AnnData.__module__ = "anndata"


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
def test_fits_of_files_and_objects_are_those_of_the_matrix(path):
    obs = pd.DataFrame({"age": ages()})
    matrix = sp.csr_array(counts(), dtype=np.float32)
    check_fits(path, AnnData(X=matrix, obs=obs, var_names=list(GENES)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
def test_objects_of_anndata(path):
    anndata: Any = pytest.importorskip("anndata")
    check_fits(path, cells())
    check_fits(path, anndata.read_h5ad(path))
    check_fits(path, anndata.read_h5ad(path, backed="r"), order=False)


def check_fits(path, cells, order=True):
    y, matrix = ages(), sp.csr_array(counts(), dtype=np.float32)
    market = path.with_suffix(".mtx")
    mmwrite(market, matrix)
    for privacy, screen in (
        (pv.LabelDP(5.0, 1e-6, y_bounds=(0, 3)), None),
        (pv.RecordDP(5.0, 1e-6, bounds=[(0, 4)] * N, y_bounds=(0, 3)), 3),
    ):
        first, *others = (
            pv.PrivateLasso(privacy=privacy, screen=screen, random_state=0).fit(*given)
            for given in ((matrix, y), (path, "age"), (str(path), y), (cells, "age"))
        )
        for other in others:
            np.testing.assert_array_equal(other.coef_, first.coef_)
            assert tuple(other.feature_names_in_) == GENES
        fit = others[0]
        np.testing.assert_array_equal(fit.predict(cells), first.predict(matrix))
        assert fit.score(path, "age") == fit.score(cells, y) == first.score(matrix, y)
        assert fit.predict(market).shape == (M,)
        if order:
            with pytest.raises(ValueError, match="another order"):
                fit.predict(cells[:, ::-1])
            with pytest.raises(ValueError, match="has 19 columns"):
                fit.predict(cells[:, 1:])


def test_an_object_without_the_column():
    cells = AnnData(X=counts(), obs=pd.DataFrame({"age": ages()}), var_names=GENES)
    with pytest.raises(ValueError, match="no column 'weight' in obs"):
        pv.PrivateLasso(privacy=pv.LabelDP(1.0, 1e-6, y_bounds=(0, 3))).fit(cells, "weight")
