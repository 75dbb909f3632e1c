"""What the scikit-learn estimators of private fits have in common."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from privasso._validation import generator
from privasso.blocks import SparseTable, sparse_of
from privasso.fit import KeptStatistics, Published, Released, ReleasedModel
from privasso.operators import Genotypes

_KEPT = "in {}_, and refit(X, lam) with another lam costs no further privacy"


class PrivateEstimator(BaseEstimator):
    """Checks of covariates and labels that quote no label, and the solve after a release."""

    #: Attributes that a fit sets.
    _fitted: ClassVar[tuple[str, ...]] = ()
    n_features_in_: int

    def _forget(self) -> None:
        """Remove what an earlier fit has left."""
        for name in self._fitted:
            self.__dict__.pop(name, None)

    def _covariates(self, X: Any, *, first: bool = False) -> Any:
        from sklearn.utils.validation import check_array, validate_data

        kinds: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "dtype": (np.float64, np.float32)}
        given: Any = X
        if isinstance(X, Genotypes):
            if not first and X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {X.shape[1]} columns, and the fit had {self.n_features_in_}"
                )
            return X
        table = given if isinstance(X, SparseTable) else sparse_of(X, None)
        if table is None:
            return validate_data(self, given, reset=first, **kinds)
        if first:
            X = validate_data(self, table.X, reset=True, **kinds)
            if table.names is not None:
                self.feature_names_in_ = np.array(table.names, dtype=object)
            return X
        X = check_array(table.X, **kinds)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {X.shape[1]} columns, and the fit had {self.n_features_in_}")
        if table.names is not None and table.names != (self._feature_names() or table.names):
            raise ValueError("X has other columns than the fit, or has them in another order")
        return X

    def _require_labels(self, y: Any) -> None:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )

    def _feature_names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(str(name) for name in names)

    def _solved(
        self, released: Released | Published | KeptStatistics, lam: float | str | None
    ) -> ReleasedModel:
        """Solve; an error says where the release is, which has been paid for."""
        kept = _KEPT.format("statistics" if isinstance(released, KeptStatistics) else "release")
        try:
            return released.solve(lam)
        except RuntimeError as error:  # a SolveError, or the linear programme gave up
            raise released.failure(error, kept) from None
        except KeyboardInterrupt as error:
            error.add_note(released.after_failure(kept))
            raise


def generator_of(random_state: Any) -> np.random.Generator | None:
    """Return a generator from what scikit-learn calls a random state; None stays None.

    >>> rng = generator_of(0)
    >>> rng is not None and rng.random() == np.random.default_rng(0).random()
    True
    """
    if random_state is None:
        return None
    if isinstance(random_state, np.random.RandomState):
        return generator(int(random_state.randint(0, 2**31 - 1)))
    return generator(random_state)
