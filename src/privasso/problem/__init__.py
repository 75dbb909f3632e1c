"""The perturbed LASSO (F, b, λ): proofs of optimality, and whether a minimiser exists."""

from privasso.problem._boundedness import (
    Programme,
    ProgrammeError,
    critical_lambda,
    is_ray,
    linear_programme,
    ray_from,
    slope,
    zero_column_ray,
)
from privasso.problem._certificate import (
    LP_LIMIT,
    NO_CERTIFICATE,
    Certificate,
    certify,
    certify_point,
    dual_gap,
    rounding_floor,
)
from privasso.problem._problem import LabelledProblem, Problem, violations

__all__ = [
    "LP_LIMIT",
    "NO_CERTIFICATE",
    "Certificate",
    "LabelledProblem",
    "Problem",
    "Programme",
    "ProgrammeError",
    "certify",
    "certify_point",
    "critical_lambda",
    "dual_gap",
    "is_ray",
    "linear_programme",
    "ray_from",
    "rounding_floor",
    "slope",
    "violations",
    "zero_column_ray",
]
