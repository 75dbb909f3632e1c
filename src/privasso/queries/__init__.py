"""Questions about private rows, and the random bits that their answers are made noisy with.

Nothing outside this room draws noise for a formal guarantee.
"""

from privasso.queries._choice import NoisyChoice, Scores
from privasso.queries._minimiser import PerturbedMinimiser
from privasso.queries._objective_noise import (
    EPSILON_SHARE,
    ObjectiveNoise,
    UncertifiedError,
    check_budget,
    coverable,
)
from privasso.queries._query import (
    EMPTIED,
    LABEL_REPLACED,
    Answering,
    Ask,
    Neighbours,
    Query,
    Relation,
    UndeclaredError,
    after,
    beside,
    declared,
    made_up,
    next_question,
    question_key,
)
from privasso.queries._rounded_gaussian import (
    ROUNDING,
    BitSource,
    bit_source,
    noise_deviation,
    rounded_gaussian,
)
from privasso.queries._shaped_minimiser import shape_factor
from privasso.queries._sum import HALF, Contribution, NoisySum, Summand, summed

__all__ = [
    "EMPTIED",
    "EPSILON_SHARE",
    "HALF",
    "LABEL_REPLACED",
    "ROUNDING",
    "Answering",
    "Ask",
    "BitSource",
    "Contribution",
    "Neighbours",
    "NoisyChoice",
    "NoisySum",
    "ObjectiveNoise",
    "PerturbedMinimiser",
    "Query",
    "Relation",
    "Scores",
    "Summand",
    "UncertifiedError",
    "UndeclaredError",
    "after",
    "beside",
    "bit_source",
    "check_budget",
    "coverable",
    "declared",
    "made_up",
    "next_question",
    "noise_deviation",
    "question_key",
    "rounded_gaussian",
    "shape_factor",
    "summed",
]
