"""A published model: coefficients, names and the privacy statement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from privasso._validation import real_array
from privasso._version import __version__
from privasso.encoding import Encoding, columns_of_frame, parameter_words
from privasso.fit._classes import Name
from privasso.noise import Noise
from privasso.privacy import Guarantee


@dataclass(frozen=True, eq=False)
class ReleasedModel:
    """A fitted model that may be published: what predictions need, and the privacy statement.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        Coefficients.
    intercept : float
        Intercept.
    lam : float
        The λ of the fit.
    guarantee : Guarantee
        The privacy statement.
    noise : NoiseDesign, Shaped or None
        The noise at the level that was used; None if a file could not describe it.
    feature_names : tuple of str or None
        Names of the columns, if the fit knew them.
    denoised : bool
        Whether the LASSO ran on the best guess from the release instead of the release itself.
    software : str
        Version of privasso that wrote it.
    encoding : Encoding or None
        How the columns of a table become the columns of the model, if that is not as they are.
    coef_se : ndarray of shape (n_features,) or None
        Standard errors of the coefficients, privacy noise included, given which of them are not
        zero; NaN for the others. None where the mechanism has none. Files do not hold them.
    screened : ndarray of int or None
        Indices of the columns that were chosen before the fit; None where all were fitted. Files
        do not hold them.
    classes : (negative, positive) or None
        Names of the two classes of a logistic regression, whose coefficients are log odds of the
        positive one. None for a linear model.
    """

    coef: np.ndarray = field(repr=False)
    intercept: float
    lam: float
    guarantee: Guarantee = field(repr=False)
    noise: Noise | None
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    denoised: bool = False
    software: str = __version__
    encoding: Encoding | None = field(default=None, repr=False)
    coef_se: np.ndarray | None = field(default=None, repr=False)
    screened: np.ndarray | None = field(default=None, repr=False)
    classes: tuple[Name, Name] | None = None

    @property
    def n_features(self) -> int:
        """Number of columns that `predict` expects."""
        return self.coef.size

    def predict(self, X: Any, *, unknown: Literal["error", "ignore"] = "error") -> np.ndarray:
        """Return ``X @ coef + intercept``, or the more probable class of a logistic regression.

        X and `unknown` are as in `linear`.
        """
        found = self.linear(X, unknown=unknown)
        return found if self.classes is None else chosen_classes(found, self.classes)

    def predict_proba(self, X: Any, *, unknown: Literal["error", "ignore"] = "error") -> np.ndarray:
        """Return the probabilities of the negative and the positive class, of shape (M, 2)."""
        if self.classes is None:
            raise ValueError("the model is linear and gives no probabilities; use predict")
        return both_probabilities(self.linear(X, unknown=unknown))

    def linear(self, X: Any, *, unknown: Literal["error", "ignore"] = "error") -> np.ndarray:
        """Return ``X @ coef + intercept``: predictions, or log odds of the positive class.

        A data frame has its columns taken by name when the model knows names, and encoded as in
        the fit; anything else must have the columns of the model in their order. A level that the
        model does not know is an error, or with ``unknown="ignore"`` counts as the reference.
        """
        if self.encoding is not None and hasattr(X, "columns"):
            inputs, levels = self.encoding.inputs, self.encoding.categorical
            table = columns_of_frame(X, inputs, categorical=levels)
            X = self.encoding.matrix(table, unknown=unknown, words=parameter_words)
        elif self.feature_names is not None and hasattr(X, "columns"):
            present = {str(name) for name in X.columns}
            missing = [name for name in self.feature_names if name not in present]
            if missing:
                raise ValueError(f"X lacks the column {missing[0]!r}, which the model needs")
            X = X[list(self.feature_names)].to_numpy()
        if sp.issparse(X):
            real_array("X", X.data if X.nnz else [0.0])
            if X.shape[1] != self.n_features:
                raise ValueError(f"X must have {self.n_features} columns, not {X.shape[1]}")
        else:
            X = real_array("X", X, shape=(None, self.n_features))
        return X @ self.coef + self.intercept


def both_probabilities(odds: np.ndarray) -> np.ndarray:
    """Probabilities of the negative and the positive class from log odds.

    >>> both_probabilities(np.array([0.0, 800.0]))
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    return np.column_stack([expit(-odds), expit(odds)])


def chosen_classes(odds: np.ndarray, classes: tuple[Name, Name]) -> np.ndarray:
    """The positive class where its log odds are positive.

    >>> chosen_classes(np.array([-0.1, 0.1]), ("no", "yes")).tolist()
    ['no', 'yes']
    """
    return np.asarray(classes)[(odds > 0.0).astype(np.intp)]
