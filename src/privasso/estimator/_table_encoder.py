"""The columns of a data frame as a matrix, for scikit-learn pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin

from privasso.encoding import Encoding, columns_of_frame, learn_encoding, parameter_words


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turns a data frame into the matrix that `privasso fit` would make of it.

    Numbers and booleans stay as they are. Text becomes one 0/1 column for each level, named
    ``region=north``, but for the most frequent level, to which the others are relative. The result
    is sparse where that is smaller. `save` keeps the encoding of a pipeline of a `TableEncoder` and
    a `PrivateLasso`.

    Parameters
    ----------
    missing : {"error", "mean", "indicator"}
        What becomes of missing values: an error; numbers are replaced by the mean of their column;
        or that and a 0/1 column that tells where a value was missing, and for text one more level.
    categorical : sequence of str
        Columns to take as levels although they hold numbers or dates.
    keep : sequence of str
        Columns to use although they look like identifiers of the rows.
    unknown : {"error", "ignore"}
        What `transform` does with a level that was not in the table of the fit: refuse it, or
        leave all columns of the variable zero, as for the most frequent level.

    Attributes
    ----------
    encoding_ : Encoding
        What each column becomes.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import polars as pl, privasso as pv
    >>> table = pl.DataFrame({"age": [61, 48, None, 55], "smoker": ["no", "yes", "no", "no"]})
    >>> encoder = pv.TableEncoder(missing="mean").fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'smoker=yes']
    >>> encoder.transform(table)[1:3]
    array([[48.        ,  1.        ],
           [54.66666667,  0.        ]])
    """

    encoding_: Encoding
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        missing: Literal["error", "mean", "indicator"] = "error",
        categorical: Sequence[str] = (),
        keep: Sequence[str] = (),
        unknown: Literal["error", "ignore"] = "error",
    ) -> None:
        self.missing = missing
        self.categorical = categorical
        self.keep = keep
        self.unknown = unknown

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn the levels and means of a data frame; labels are not looked at."""
        table = columns_of_frame(X, categorical=tuple(self.categorical))
        self.encoding_ = learn_encoding(
            table, missing=self.missing, keep=tuple(self.keep), words=parameter_words
        )
        self.n_features_in_ = len(self.encoding_.inputs)
        self.feature_names_in_ = np.array(self.encoding_.inputs, dtype=object)
        return self

    def transform(self, X: Any) -> np.ndarray | sp.csr_array:
        """Return the matrix of a data frame that has the columns of the fit, in any order."""
        if self.unknown not in ("error", "ignore"):
            raise ValueError(f"unknown must be 'error' or 'ignore', not {self.unknown!r}")
        encoding = self._learnt()
        table = columns_of_frame(X, encoding.inputs, categorical=encoding.categorical)
        return encoding.matrix(table, unknown=self.unknown, words=parameter_words)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of the matrix."""
        return np.array(self._learnt().names, dtype=object)

    def _learnt(self) -> Encoding:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "encoding_")
        return self.encoding_
