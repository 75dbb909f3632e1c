"""Names of types that every room uses."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

#: A sparse matrix of scipy, which tells type checkers nothing about it.
SparseMatrix: TypeAlias = Any
#: Numbers in rows and columns. What is done with one is checked as for an array.
Matrix: TypeAlias = np.ndarray | SparseMatrix
#: What can be read as a matrix.
MatrixLike: TypeAlias = ArrayLike | SparseMatrix
#: An object of another library that tells type checkers nothing about it.
Foreign: TypeAlias = Any
#: A data frame of polars or pandas.
Frame: TypeAlias = Foreign
#: What comes of a question, a program or a search, each of which has a kind of its own.
Found: TypeAlias = Any
#: A value of a JSON document, which is checked where it is read.
Json: TypeAlias = Any
#: What is given for an argument by its name, and checked by who receives it.
Passed: TypeAlias = Any
#: Weights of rows, if they have any.
Weights: TypeAlias = ArrayLike | None
#: What scikit-learn calls a random state.
Seed: TypeAlias = int | np.random.RandomState | np.random.Generator | None
