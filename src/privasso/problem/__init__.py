"""The perturbed LASSO as a problem (F, b, λ), its certificates, and whether it has a solution."""

from privasso.problem._boundedness import (
    ProgrammeError,
    critical_lambda,
    is_ray,
    linear_programme,
    ray_from,
    slope,
    zero_column_ray,
)
from privasso.problem._certificate import LP_LIMIT, NO_CERTIFICATE, Certificate, certify, dual_gap
from privasso.problem._problem import Problem, violations

__all__ = [
    "LP_LIMIT",
    "NO_CERTIFICATE",
    "Certificate",
    "Problem",
    "ProgrammeError",
    "certify",
    "critical_lambda",
    "dual_gap",
    "is_ray",
    "linear_programme",
    "ray_from",
    "slope",
    "violations",
    "zero_column_ray",
]
