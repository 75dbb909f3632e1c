"""Write cells.h5ad with anndata: ``pip install anndata``, then run this file in its folder.

The file is kept, because anndata brings a dozen packages and asks for older versions of others.
"""

from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

M, N = 60, 20


def counts() -> np.ndarray:
    """What the matrix in the file holds."""
    i, j = np.indices((M, N))
    return np.where((7 * i + 3 * j) % 11 == 0, 1 + (i * j) % 4, 0)


def ages() -> np.ndarray:
    """The column of labels."""
    return np.clip(0.5 * counts()[:, 4] + 0.1 * np.sin(np.arange(M)), 0, 3)


def cells() -> Any:
    """An AnnData with every way in which it stores a matrix, and three kinds of columns."""
    anndata, frames = import_module("anndata"), import_module("pandas")
    obs = frames.DataFrame(
        {
            "age": ages(),
            "visits": frames.array([2 if i % 7 else None for i in range(M)], "Int64"),
            "kind": frames.Categorical(["b", "c"] * (M // 2)),
        },
        index=[f"cell{i}" for i in range(M)],
    )
    var = frames.DataFrame(index=[f"gene{j}" for j in range(N)])
    numbers = sp.csr_matrix(counts())
    layers = {
        "csc": numbers.astype(np.float32).tocsc(),
        "dense": counts().astype(np.float32),
        "double": numbers.astype(np.float64),
        "counts": numbers.astype(np.int32),
    }
    return anndata.AnnData(numbers.astype(np.float32), obs=obs, var=var, layers=layers)


if __name__ == "__main__":
    cells().write_h5ad("cells.h5ad", compression="gzip")
