"""What the scikit-learn estimators of private fits have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning

from privasso._covariates import covariates
from privasso._validation import attempt, generator, real_array
from privasso.blocks import RowBlocks, SparseTable, sparse_of
from privasso.estimator._prepared import learnt_from
from privasso.fit import (
    Outcome,
    Plan,
    ReleasedModel,
    warn_user,
)
from privasso.privacy import Privacy
from privasso.programs import Intervals

_COLUMN = (
    "A column-vector y was passed when a 1d array was expected; use y.ravel() or the column itself"
)
_LEARNT = (
    "{} learnt from the records that this fit protects, and what it learnt has no privacy: the "
    "guarantee does not cover it, so that the model is not for release. Prepare the columns by "
    "rules that do not depend on the data, such as a TableEncoder with a data dictionary; RecordDP "
    "needs no columns of equal scale. A step that was fitted on public data passes in a "
    "FrozenEstimator"
)
_KEPT = "in {}_, and refit(X, lam) with another lam costs no further privacy"


class PrivateEstimator(BaseEstimator):
    """Checks of covariates and labels that quote no label, and the solve after a release."""

    #: Attributes that a fit sets.
    _fitted: ClassVar[tuple[str, ...]] = ()
    n_features_in_: int
    intervals_: Intervals
    privacy: Privacy | None

    @abstractmethod
    def released_model(self) -> ReleasedModel:
        """Return what may be published of this fit."""

    def confint(
        self, level: float = 0.95, target: str | None = None, *, simultaneous: bool = False
    ) -> np.ndarray:
        """Low and high of each coefficient of the population; see `ReleasedModel.confint`.

        It needs a fit with ``intervals=True`` and costs nothing more.
        """
        return self.released_model().confint(level, target, simultaneous=simultaneous)

    def summary(self, level: float = 0.95, target: str | None = None) -> Any:
        """The coefficients as a table, with intervals if there are any; see `ReleasedModel`."""
        return self.released_model().summary(level, target)

    @property
    def _formal(self) -> bool:
        """Whether there is a guarantee, which a refusal of a single label would break."""
        return isinstance(self.privacy, Privacy) and self.privacy.formal

    def _forget(self) -> None:
        """Remove what an earlier fit has left."""
        for name in self._fitted:
            self.__dict__.pop(name, None)

    @property
    def _private(self) -> bool:
        """Whether covariates are private."""
        return isinstance(self.privacy, Privacy) and self.privacy.protects_records

    def _covariates(self, X: Any, *, first: bool = False) -> Any:
        """Covariates as a matrix, whose columns are noted in a fit and compared with it later.

        Cells of private records are not looked at: the mechanism knows what each counts as.
        """
        from sklearn.utils.validation import validate_data

        finite = not (first and self._private)
        table = cast(Any, X) if isinstance(X, SparseTable) else sparse_of(X, None)
        blocks = isinstance(X, RowBlocks) and not first
        if table is None and not blocks:
            found = covariates(X, finite=finite)
            shown: Any = X if hasattr(X, "columns") else found
            validate_data(self, shown, reset=first, skip_check_array=True)
            return found
        found: Any = X if table is None else covariates(table.X, finite=finite)
        names = X.names if table is None else table.names
        if first:
            self._note_columns(found.shape[1], names)
        elif found.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {found.shape[1]} columns, and the fit had {self.n_features_in_}"
            )
        elif names is not None and names != (self._feature_names() or names):
            raise ValueError("X has other columns than the fit, or has them in another order")
        return found

    def _note_columns(self, n_columns: int, names: tuple[str, ...] | None) -> None:
        self.n_features_in_ = n_columns
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _column(self, y: Any) -> Any:
        """Labels without the second dimension that one column of a table has."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        shape = attempt(lambda: np.shape(y))
        if shape is None or len(shape) != 2 or shape[1] != 1:
            return y
        warn_user(_COLUMN, DataConversionWarning)
        return attempt(lambda: y.iloc[:, 0] if hasattr(y, "iloc") else np.asarray(y)[:, 0])

    def _weights(self, sample_weight: Any, n_rows: int) -> np.ndarray | None:
        if sample_weight is None:
            return None
        return real_array("sample_weight", sample_weight, shape=(n_rows,))

    def _feature_names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(str(name) for name in names)

    def _stated(self, plan: Plan, X: Any) -> Plan:
        """The plan, whose statement tells if columns of private records were prepared by them."""
        learnt = learnt_from(X) if self._private else []
        if not learnt:
            return plan
        warn_user(_LEARNT.format(" and ".join(learnt)))
        return plan.stating(plan.guarantee.on_learnt_columns())

    def _solved(self, released: Outcome, lam: float | str | None) -> ReleasedModel:
        """Solve; an error says where the release is, which has been paid for."""
        kept = _KEPT.format(released.kept_as or "release")
        try:
            return released.solve(lam)
        except RuntimeError as error:  # a SolveError, or the linear programme gave up
            raise released.failure(error, kept) from None
        except (KeyboardInterrupt, MemoryError) as error:
            error.add_note(released.after_failure(kept))
            raise


def generator_of(random_state: Any) -> np.random.Generator | None:
    """Return a generator from what scikit-learn calls a random state; None stays None."""
    if random_state is None:
        return None
    if isinstance(random_state, np.random.RandomState):
        return generator(int(random_state.randint(0, 2**31 - 1)))
    return generator(random_state)
