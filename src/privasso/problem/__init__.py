"""The perturbed LASSO and the clipped one: proofs of optimality, and whether a minimiser exists."""

from privasso.problem._boundedness import (
    ProgrammeError,
    RaySearch,
    critical_lambda,
    is_ray,
    linear_programme,
    ray_from,
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
    step_to_feasible,
)
from privasso.problem._clipped import ClippedProblem, smallest_subgradient
from privasso.problem._clipped_certificate import (
    ClippedCertificate,
    certain_curvature,
    certify_clipped,
    sharpened,
    undecided_columns,
)
from privasso.problem._loss import Clipped, Huber, Logistic, Loss, loss_from_name
from privasso.problem._problem import LabelledProblem, Problem, violations
from privasso.problem._quantile import Quantile
from privasso.problem._ridge import as_ridge

__all__ = [
    "LP_LIMIT",
    "NO_CERTIFICATE",
    "Certificate",
    "Clipped",
    "ClippedCertificate",
    "ClippedProblem",
    "Huber",
    "LabelledProblem",
    "Logistic",
    "Loss",
    "Problem",
    "ProgrammeError",
    "Quantile",
    "RaySearch",
    "as_ridge",
    "certain_curvature",
    "certify",
    "certify_clipped",
    "certify_point",
    "critical_lambda",
    "dual_gap",
    "is_ray",
    "linear_programme",
    "loss_from_name",
    "ray_from",
    "rounding_floor",
    "sharpened",
    "smallest_subgradient",
    "step_to_feasible",
    "undecided_columns",
    "violations",
    "zero_column_ray",
]
