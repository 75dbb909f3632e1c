"""What the scikit-learn estimators of private fits have in common."""

from __future__ import annotations

import sys
from abc import abstractmethod
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from privasso._covariates import covariates
from privasso._types import Foreign, Matrix, Passed, Seed, Weights
from privasso._validation import attempt, generator, real_array
from privasso.blocks import RowBlocks, SparseTable, sparse_of
from privasso.estimator._table_encoder import LEARNT, TableEncoder
from privasso.fit import (
    ONE_LAM,
    FitOptions,
    KeptRelease,
    KeptStatistics,
    Name,
    Outcome,
    Plan,
    ReleasedModel,
    plan_for,
    warn_user,
)
from privasso.noise import Noise
from privasso.privacy import Guarantee, Privacy
from privasso.programs import Intervals

if TYPE_CHECKING:
    import polars as pl

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

    #: Attributes that a fit sets, and whether those of coefficients have a line for each class.
    _fitted: ClassVar[tuple[str, ...]] = ()
    _by_class: ClassVar[bool] = False
    n_features_in_: int
    coef_: np.ndarray
    intercept_: Any
    coef_se_: np.ndarray
    lam_: float
    denoised_: bool
    screened_: np.ndarray
    release_: KeptRelease
    statistics_: KeptStatistics
    guarantee_: Guarantee
    noise_: Noise
    intervals_: Intervals
    privacy: Privacy | None
    random_state: Seed

    def released_model(self) -> ReleasedModel:
        """Return what may be published of this fit; `save` writes it."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "coef_")
        found: dict[str, Passed] = {"coef": self.coef_, "intercept": self.intercept_}
        found["coef_se"] = getattr(self, "coef_se_", None)
        if self._by_class:
            found = {name: None if x is None else x[0] for name, x in found.items()}
        found["intercept"] = float(found["intercept"])
        return ReleasedModel(
            **found,
            lam=float(self.lam_),
            guarantee=self.guarantee_,
            noise=getattr(self, "noise_", None),
            feature_names=self._feature_names(),
            denoised=getattr(self, "denoised_", hasattr(self, "release_")),
            screened=getattr(self, "screened_", None),
            classes=self._class_names,
            intervals=getattr(self, "intervals_", None),
        )

    @property
    @abstractmethod
    def _class_names(self) -> tuple[Name, Name] | None:
        """The classes of a fit for two of them."""

    def confint(
        self, level: float = 0.95, target: str | None = None, *, simultaneous: bool = False
    ) -> np.ndarray:
        """Low and high of each coefficient of the population; see `ReleasedModel.confint`.

        It needs a fit with ``intervals=True`` and costs nothing more.
        """
        return self.released_model().confint(level, target, simultaneous=simultaneous)

    def summary(self, level: float = 0.95, target: str | None = None) -> pl.DataFrame:
        """The coefficients as a table, with intervals if there are any; see `ReleasedModel`."""
        return self.released_model().summary(level, target)

    @property
    def _formal(self) -> bool:
        """Whether there is a guarantee, which a refusal of a single label would break."""
        return isinstance(self.privacy, Privacy) and self.privacy.formal

    def _options(self, **instead: Passed) -> FitOptions:
        """The parameters as options of a fit, with what stands for some of them."""
        given = {**self.get_params(deep=False), **instead}
        del given["random_state"]
        flags = {name: bool(given[name]) for name in ("fit_intercept", "denoise") if name in given}
        return FitOptions(**{**given, **flags})

    def _forget(self) -> None:
        """Remove what an earlier fit has left."""
        for name in self._fitted:
            self.__dict__.pop(name, None)

    @property
    def _private(self) -> bool:
        """Whether covariates are private."""
        return isinstance(self.privacy, Privacy) and self.privacy.protects_records

    def _covariates(self, X: Foreign, *, first: bool = False) -> Matrix:
        """Covariates as a matrix, whose columns are noted in a fit and compared with it later.

        Cells of private records are not looked at: the mechanism knows what each counts as.
        """
        from sklearn.utils.validation import validate_data

        finite = not (first and self._private)
        table = X if isinstance(X, SparseTable) else sparse_of(X, None)
        blocks = isinstance(X, RowBlocks) and not first
        if table is None and not blocks:
            found = covariates(X, finite=finite)
            shown: Foreign = X if hasattr(X, "columns") else found
            validate_data(self, shown, reset=first, skip_check_array=True)
            return found
        found: Matrix | RowBlocks = X if table is None else covariates(table.X, finite=finite)
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

    def _column(self, y: object) -> ArrayLike | None:
        """Labels without the second dimension that one column of a table has."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        labels: Any = y
        shape = attempt(lambda: np.shape(labels))
        if shape is None or len(shape) != 2 or shape[1] != 1:
            return labels
        warn_user(_COLUMN, DataConversionWarning)
        return attempt(lambda: getattr(labels, "iloc", np.asarray(labels))[:, 0])

    def _weights(self, sample_weight: Weights, n_rows: int) -> np.ndarray | None:
        if sample_weight is None:
            return None
        return real_array("sample_weight", sample_weight, shape=(n_rows,))

    def _feature_names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(str(name) for name in names)

    def _stated(self, plan: Plan, X: Matrix) -> Plan:
        """The plan, whose statement tells if columns of private records were prepared by them."""
        learnt = learnt_from(X) if self._private else []
        if not learnt:
            return plan
        warn_user(_LEARNT.format(" and ".join(learnt)))
        return replace(plan, guarantee=plan.guarantee.on_learnt_columns())

    def _released(
        self,
        X: Matrix,
        y: ArrayLike | None,
        options: FitOptions,
        given: object,
        *,
        sample_weight: Weights = None,
        target: str | None = None,
    ) -> Outcome:
        """Plan the fit, read the labels once, and keep what was released.

        `given` is what the user passed for X.
        """
        rng, names = generator_of(self.random_state), self._feature_names()
        plan = plan_for(
            X, options, sample_weight=sample_weight, seeded=rng is not None, feature_names=names
        )
        if plan.guarantee.formal and rng is None and plan.guarantee.warning is not None:
            warn_user(plan.guarantee.warning)
        plan = self._stated(plan, given)
        released = plan.release(y, rng=rng, feature_names=names, target=target)
        self.guarantee_ = released.guarantee
        if plan.noise is not None:
            self.noise_ = plan.noise
        if released.kept is not None:
            setattr(self, f"{released.kept_as}_", released.kept)
        return released

    def _check_kept(self, verb: str) -> None:
        """Refuse to solve again where nothing is kept that the guarantee covers."""
        if isinstance(self.privacy, Privacy):
            self.privacy.check_release_use(verb)
        if hasattr(self, "screened_"):
            raise ValueError(
                f"{verb} needs a release of all columns, and this fit chose some; call fit again "
                "with screen='all', which costs"
            )
        kept = hasattr(self, "release_") or hasattr(self, "statistics_")
        if hasattr(self, "coef_") and not kept:
            raise ValueError(ONE_LAM.format(verb))
        if not kept:
            raise NotFittedError(f"call fit before {verb}: there is no release yet")

    def _take(self, released: Outcome, lam: float | str | None = None) -> Self:
        """Solve, and store the coefficients; an error says where the release is, which is paid."""
        kept = _KEPT.format(released.kept_as or "release")
        try:
            model = released.solve(lam)
        except RuntimeError as error:  # a SolveError, or the linear programme gave up
            raise released.failure(error, kept) from None
        except (KeyboardInterrupt, MemoryError) as error:
            error.add_note(released.after_failure(kept))
            raise
        found = {"coef_": model.coef, "intercept_": model.intercept, "coef_se_": model.coef_se}
        if self._by_class:
            found = {name: None if x is None else np.asarray(x)[None] for name, x in found.items()}
        found |= {"lam_": model.lam, "denoised_": model.denoised, "screened_": model.screened}
        for name, value in {**found, "intervals_": model.intervals}.items():
            if value is not None and name in self._fitted:
                setattr(self, name, value)
        return self


def generator_of(random_state: Seed) -> np.random.Generator | None:
    """Return a generator from what scikit-learn calls a random state; None stays None."""
    if random_state is None:
        return None
    if isinstance(random_state, np.random.RandomState):
        return generator(int(random_state.randint(0, 2**31 - 1)))
    return generator(random_state)


def learnt_from(X: object) -> list[str]:
    """Names of what learnt from the data before this fit, where that can be seen.

    These are the steps of the scikit-learn pipelines that are being fitted, unless they have
    nothing to learn, and an encoder that returned X itself. What else was done to X is not seen.
    """
    found = ["TableEncoder"] if X is not None and LEARNT.get(id(X)) is X else []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == Pipeline.__module__:
            pipeline = frame.f_locals.get("self")
            if isinstance(pipeline, Pipeline):
                found += [type(step).__name__ for _, step in pipeline.steps[:-1] if _learns(step)]
        frame = frame.f_back
    return list(dict.fromkeys(found))


def _learns(step: object) -> bool:
    """Whether a step of a pipeline takes something from the data that it is fitted on."""
    if step is None or step == "passthrough" or isinstance(step, FrozenEstimator):
        return False
    if isinstance(step, TableEncoder):
        return step.dictionary is None
    tags = attempt(lambda: get_tags(step))
    return tags is None or tags.requires_fit
