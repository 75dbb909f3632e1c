"""A fit of whole records: the minimiser of a perturbed objective, or noisy statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from privasso._covariates import covariates
from privasso._validation import real_labels
from privasso._version import __version__
from privasso.blocks import RowBlocks
from privasso.fit._charge import Charge
from privasso.fit._model import ReleasedModel
from privasso.fit._options import FitOptions
from privasso.fit._path import CoefficientPath
from privasso.fit._released import AfterReleaseError
from privasso.fit._start import check_run, fit_in_words, with_classes
from privasso.fit._statistics import KeptStatistics
from privasso.operators import Genotypes
from privasso.privacy import (
    Guarantee,
    PerturbedObjective,
    PerturbsObjective,
    Privacy,
    ScreenedObjective,
    ShapedObjective,
    StatisticsMechanism,
    Terms,
    check_public_fill,
    check_room,
)
from privasso.queries import BitSource, bit_source


@dataclass(frozen=True, eq=False)
class Published:
    """The model of a perturbed fit.

    It answers like `Released`, but there is nothing to solve again.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> from privasso.fit import FitOptions, plan_for
    >>> X = np.random.default_rng(101).random((500, 2))
    >>> privacy = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * 2, y_bounds=(0, 1))
    >>> released = plan_for(X, FitOptions(privacy)).release(X[:, 0])
    >>> isinstance(released, Published), released.solve().coef.shape
    (True, (2,))
    """

    model: ReleasedModel
    privacy: Privacy

    kept = None

    def solve(self, lam: float | str | None = None) -> ReleasedModel:
        """Return the model; another λ would be another release."""
        if lam is not None and lam != self.model.lam:
            self.privacy.check_release_use("another λ")
        return self.model

    def path(self, lams: ArrayLike) -> CoefficientPath:
        """Refuse: each λ would be a release of its own."""
        self.privacy.check_release_use("a path over λ")
        raise AssertionError("a perturbed objective has no release to solve from")

    def failure(self, error: Exception, kept: str) -> Exception:
        """Return the error to raise when a step after the release fails."""
        happened = str(error).rstrip(".")
        return AfterReleaseError(f"{self.after_failure(kept)} What happened: {happened}.")

    def after_failure(self, kept: str) -> str:
        """Say what became of the budget, and of the model, which is kept as `kept` says."""
        if not kept:
            return self.privacy.after_failure("")
        return (
            "The privacy budget of this fit is spent, but nothing is lost: the model is kept "
            f"{kept}."
        )


@dataclass(frozen=True, eq=False)
class PerturbedPlan:
    """Everything that is decided about a fit of records before the data are read.

    Attributes
    ----------
    options : FitOptions
        What was asked for.
    objective : PerturbedObjective, ScreenedObjective, ShapedObjective or StatisticsMechanism
        Noise, ridge and scaling, and how columns are chosen where they are.
    lam : float
        λ.
    guarantee : Guarantee
        What a fit will state.
    seeded : bool
        Whether the noise comes from a fixed random state.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> from privasso.fit import FitOptions, plan_for
    >>> privacy = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * 2, y_bounds=(0, 1))
    >>> plan = plan_for(np.zeros((500, 2)), FitOptions(privacy))
    >>> plan.lam, round(plan.objective.noise.kappa, 4)
    (0.01, 0.0593)
    """

    options: FitOptions
    objective: PerturbedObjective | ScreenedObjective | ShapedObjective | StatisticsMechanism
    lam: float
    guarantee: Guarantee = field(repr=False)
    seeded: bool
    X: Any = field(repr=False)

    noise = None

    def release(
        self,
        y: ArrayLike | None,
        *,
        rng: np.random.Generator | None = None,
        feature_names: tuple[str, ...] | None = None,
        target: str | None = None,
        give_up_rows: bool = False,
        charged: bool = False,
        keep: Callable[[Any, str], None] | None = None,
    ) -> Published | KeptStatistics:
        """Read the data, draw the noise once, and return the model, or what it is solved from.

        The ledger, if there is one, is charged before the noise is drawn, unless that was done
        already or nothing will be published (`charged`). A record whose label is NaN is an empty
        one. With `give_up_rows` the plan drops its covariates here and cannot be carried out again,
        which frees their memory as soon as they have been scaled. Blocks of rows hold their labels,
        so that `y` is None for them. `keep` is as for `Plan`.
        """
        check_run(rng, self.seeded, feature_names, target)
        what = fit_in_words(self.X.shape, target, self.seeded)
        with Charge(
            self.options.privacy,
            self.guarantee,
            self.options.ledger,
            what,
            charged=charged,
            keep=keep,
        ) as charge:
            if isinstance(self.X, RowBlocks):
                made = self._over_blocks(self.X, rng, feature_names, target, charge)
            else:
                labels = real_labels(y, self.X.shape[0])
                if not isinstance(self.objective, ScreenedObjective):
                    check_room(self.X.shape[1])
                # Taken out where it is passed on, so that no frame here refers to it.
                held = [self.X]
                if give_up_rows:
                    object.__setattr__(self, "X", None)
                charge.make(labels)
                made = self._in_memory(held, labels, rng, feature_names, target)
            return charge.kept(made)

    def _in_memory(
        self,
        held: list[Any],
        labels: np.ndarray,
        rng: np.random.Generator | None,
        feature_names: tuple[str, ...] | None,
        target: str | None,
    ) -> Published | KeptStatistics:
        """Draw the noise, and fit or return what is fitted from; `held` holds the covariates."""
        if isinstance(self.objective, StatisticsMechanism):
            rows = self.objective.table.held(held.pop(), labels)
            return self._statistics(rows, bit_source(rng), feature_names, target)
        errors = chosen = None
        if isinstance(self.objective, ScreenedObjective):
            found = self.objective.release(held.pop(), labels, self.lam, bit_source(rng))
            coef, intercept, chosen = found
        elif isinstance(self.objective, ShapedObjective):
            found = self.objective.fit(held.pop(), labels, self.lam, bit_source(rng))
            coef, intercept, errors = found.coef, found.intercept, found.coef_se
        else:
            coef, intercept = self.objective.release(held.pop(), labels, self.lam, bit_source(rng))
        return self._published(coef, intercept, feature_names, coef_se=errors, screened=chosen)

    def _statistics(
        self,
        rows: RowBlocks,
        bits: BitSource,
        feature_names: tuple[str, ...] | None,
        target: str | None,
    ) -> KeptStatistics:
        """Sum with noise what any λ is solved from."""
        assert isinstance(self.objective, StatisticsMechanism)
        return KeptStatistics(
            self.objective.release(rows, bits),
            self.options.privacy,
            self.guarantee,
            self.lam,
            feature_names,
            __version__,
            target,
        )

    def _over_blocks(
        self,
        blocks: RowBlocks,
        rng: np.random.Generator | None,
        feature_names: tuple[str, ...] | None,
        target: str | None,
        charge: Charge,
    ) -> Published | KeptStatistics:
        """Read all blocks once, charge the ledger, draw the noise, and fit."""
        objective = self.objective
        bits = charge.before(bit_source(rng), lambda: blocks.identity)
        if isinstance(objective, StatisticsMechanism):
            return self._statistics(blocks, bits, feature_names, target)
        if isinstance(objective, ScreenedObjective):
            passes = objective.opened(blocks)
            charge.make(blocks.identity)
            coef, intercept, chosen = objective.release_over(passes, self.lam, bits)
            return self._published(coef, intercept, feature_names, screened=chosen)
        assert isinstance(objective, PerturbedObjective)
        objective.check_blocks(blocks)
        objective = objective.estimated(blocks, bits)
        passes = objective.opened(blocks)
        charge.make(blocks.identity)  # unless what was found with noise did it
        coef, intercept = objective.release_over(passes, self.lam, bits)
        return self._published(coef, intercept, feature_names)

    def _published(
        self,
        coef: np.ndarray,
        intercept: float,
        feature_names: tuple[str, ...] | None,
        *,
        coef_se: np.ndarray | None = None,
        screened: np.ndarray | None = None,
    ) -> Published:
        classes = self.options.classes
        model = ReleasedModel(
            coef=coef,
            intercept=intercept,
            coef_se=coef_se,
            screened=screened,
            lam=self.lam,
            guarantee=self.guarantee,
            noise=None,
            feature_names=feature_names,
            software=__version__,
            classes=None if classes is None else classes.names,
        )
        return Published(model, self.options.privacy)


def plan_perturbed(
    X: Any,
    options: FitOptions,
    privacy: PerturbsObjective,
    *,
    seeded: bool,
    feature_names: tuple[str, ...] | None,
) -> PerturbedPlan:
    """Determine noise, ridge, λ and statement from public numbers; only the shape of X is used."""
    if isinstance(X, RowBlocks):
        return _plan_blocks(X, options, privacy, seeded=seeded)
    if isinstance(X, Genotypes):
        check_public_fill(X)
    else:
        X = covariates(X, finite=False)
    m, n = X.shape
    intercept, seen = options.fit_intercept, options.classes
    terms = Terms(fit_intercept=intercept, seeded=seeded, n_rows=m)
    if options.screen is not None:
        screened = privacy.screened(
            m, n, feature_names, fit_intercept=intercept, screen=options.screen
        )
        if screened is not None:
            lam = screened.lam if options.fixed_lam is None else options.fixed_lam
            guarantee = privacy.guarantee_for_screened(screened, terms)
            return PerturbedPlan(options, screened, lam, guarantee, seeded, X)
    check_screened(X)
    if sp.issparse(X):
        raise ValueError(
            f"{type(privacy).__name__} moves each column to the middle of its bounds, which fills "
            "a sparse matrix; pass X.toarray(), or choose some columns first with screen="
        )
    if seen is not None:
        logistic = privacy.logistic(m, n, feature_names, fit_intercept=intercept)
        lam = logistic.lam if options.fixed_lam is None else options.fixed_lam
        guarantee = with_classes(privacy.guarantee_for(logistic.noise, terms), seen)
        return PerturbedPlan(options, logistic, lam, guarantee, seeded, X)
    statistics = privacy.statistics(m, n, feature_names, fit_intercept=intercept)
    shaped = privacy.shaped(m, n, feature_names, fit_intercept=intercept)
    objective = privacy.objective(m, n, feature_names, fit_intercept=intercept)
    objective = objective if shaped is None else shaped
    lam = objective.lam if options.fixed_lam is None else options.fixed_lam
    if statistics is not None:
        guarantee = privacy.guarantee_for_statistics(statistics, terms)
        return PerturbedPlan(options, statistics, lam, guarantee, seeded, X)
    guarantee = privacy.guarantee_for(objective.noise, terms)
    return PerturbedPlan(options, objective, lam, guarantee, seeded, X)


def check_screened(X: Any) -> None:
    """Refuse packed genotypes of which no columns are chosen."""
    if isinstance(X, Genotypes):
        raise ValueError(
            "a fit of all columns is expected to be better than one of some here, and packed "
            "genotypes are read in another way for that; leave screen (--screen) out, or give it "
            "the number of columns to choose"
        )


def _plan_blocks(
    blocks: RowBlocks, options: FitOptions, privacy: PerturbsObjective, *, seeded: bool
) -> PerturbedPlan:
    """The plan for blocks of rows, of the plain mechanism, or of one that chooses columns first."""
    m, n = blocks.shape
    intercept, names = options.fit_intercept, blocks.names
    terms = Terms(fit_intercept=intercept, seeded=seeded, n_rows=m)
    if options.screen is not None:
        screened = privacy.screened(m, n, names, fit_intercept=intercept, screen=options.screen)
        if screened is not None:
            lam = screened.lam if options.fixed_lam is None else options.fixed_lam
            guarantee = privacy.guarantee_for_screened(screened, terms)
            return PerturbedPlan(options, screened, lam, guarantee, seeded, blocks)
    if (
        options.classes is not None
        or privacy.shaped(m, n, names, fit_intercept=intercept) is not None
    ):
        raise ValueError(
            "blocks of rows are fitted without shape or classes; leave these out, or fit an array "
            "in memory"
        )
    statistics = privacy.statistics(m, n, names, fit_intercept=intercept)
    objective = privacy.objective(m, n, names, fit_intercept=intercept)
    lam = objective.lam if options.fixed_lam is None else options.fixed_lam
    if statistics is not None:
        guarantee = privacy.guarantee_for_statistics(statistics, terms)
        return PerturbedPlan(options, statistics, lam, guarantee, seeded, blocks)
    guarantee = privacy.guarantee_for(objective.noise, terms)
    return PerturbedPlan(options, objective, lam, guarantee, seeded, blocks)
