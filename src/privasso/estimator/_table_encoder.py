"""The columns of a data frame as a matrix."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal
from weakref import WeakValueDictionary

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from privasso._types import Foreign, Frame, Matrix
from privasso.encoding import (
    Dictionary,
    Encoding,
    columns_of_frame,
    declared_columns,
    frame_labels,
    learn_encoding,
    parameter_words,
    read_dictionary,
)

#: Matrices of encoders that learnt from the data, by their identity, as long as they exist.
LEARNT: WeakValueDictionary[int, Matrix] = WeakValueDictionary()


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turns a data frame into the matrix that `privasso fit` would make of it.

    Numbers and booleans stay as they are. Text becomes one 0/1 column for each level, named
    ``region=north``, but for the most frequent level, to which the others are relative. The result
    is sparse where that is smaller. `save` keeps the encoding of a pipeline of a `TableEncoder` and
    a `PrivateLasso`.

    Levels and means are learnt from the table, which is right where covariates are public. Where
    they are private, as with `RecordDP`, pass the data dictionary that `privasso bounds` begins:
    then nothing is learnt, and each cell is read for itself as `privasso fit --record-dp` does.

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
    dictionary : path or encoding.Dictionary, optional
        Says of each column that is used whether it holds numbers or which levels it has, and what
        stands for a missing number; the other parameters are left out then. No cell is refused: one
        that is no number is a missing one, and a text that is no level is zero in all columns of
        its variable. The matrix is a polars data frame, unless `set_output` asks for something
        else, so that ``RecordDP(bounds=dictionary.bounds)`` finds the columns by name.

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

    With a dictionary, for private records:

    >>> from privasso.encoding import Dictionary, LevelEntry, NumberEntry
    >>> known = Dictionary((NumberEntry("age", 18, 98), LevelEntry("smoker", ("yes",))))
    >>> pv.TableEncoder(dictionary=known).fit(table).transform(table).rows()[1:3]
    [(48.0, 1.0), (58.0, 0.0)]
    >>> privacy = pv.RecordDP(1.0, 1e-6, bounds=known.bounds, y_bounds=(60, 160))
    """

    encoding_: Encoding
    declared_: Dictionary
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        missing: Literal["error", "mean", "indicator"] = "error",
        categorical: Sequence[str] = (),
        keep: Sequence[str] = (),
        unknown: Literal["error", "ignore"] = "error",
        dictionary: str | os.PathLike[str] | Dictionary | None = None,
    ) -> None:
        self.missing = missing
        self.categorical = categorical
        self.keep = keep
        self.unknown = unknown
        self.dictionary = dictionary

    def fit(self, X: Frame, y: object = None) -> TableEncoder:
        """Learn the levels and means of a data frame; labels are not looked at.

        With a dictionary only the names of the columns are.
        """
        if self.dictionary is None:
            table = columns_of_frame(X, categorical=tuple(self.categorical))
            self.encoding_ = learn_encoding(
                table, missing=self.missing, keep=tuple(self.keep), words=parameter_words
            )
        else:
            known, names = self._public(), frame_labels(X)
            absent = [name for name in known.names if name not in names]
            if absent:
                raise ValueError(
                    f"the data frame has no column {absent[0]!r}, which the dictionary describes"
                )
            self.declared_ = known.of([name for name in names if name in known.names])
            self.encoding_ = self.declared_.encoding
            if not hasattr(self, "_sklearn_output_config"):
                self.set_output(transform="polars")
        self.n_features_in_ = len(self.encoding_.inputs)
        self.feature_names_in_ = np.array(self.encoding_.inputs, dtype=object)
        return self

    def transform(self, X: Frame) -> Foreign:
        """Return the matrix of a data frame that has the columns of the fit, in any order."""
        encoding = self._learnt()
        if self.dictionary is not None:
            table = declared_columns(X, self.declared_)
            return self.declared_.matrix(table, words=parameter_words)
        if self.unknown not in ("error", "ignore"):
            raise ValueError(f"unknown must be 'error' or 'ignore', not {self.unknown!r}")
        table = columns_of_frame(X, encoding.inputs, categorical=encoding.categorical)
        matrix = encoding.matrix(table, unknown=self.unknown, words=parameter_words)
        LEARNT[id(matrix)] = matrix
        return matrix

    def _public(self) -> Dictionary:
        """The dictionary, which leaves nothing to the other parameters."""
        given = (self.missing, tuple(self.categorical), tuple(self.keep), self.unknown)
        if given != ("error", (), (), "error"):
            raise ValueError(
                "a dictionary says what becomes of every column; leave missing, categorical, keep "
                "and unknown out"
            )
        if isinstance(self.dictionary, Dictionary):
            return self.dictionary
        if not isinstance(self.dictionary, (str, os.PathLike)):
            raise ValueError("dictionary must be the path of a data dictionary, or a Dictionary")
        return read_dictionary(self.dictionary)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the columns of the matrix."""
        return np.array(self._learnt().names, dtype=object)

    def _learnt(self) -> Encoding:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "encoding_")
        return self.encoding_
