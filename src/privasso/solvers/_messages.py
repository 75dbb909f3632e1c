"""What a solve says about its end: the cause, and what to do about it."""

from __future__ import annotations

import numpy as np

from privasso.problem import Certificate, Problem
from privasso.solvers._solution import Status


def describe(
    problem: Problem,
    status: Status,
    method: str,
    certificate: Certificate,
    ray: np.ndarray | None,
) -> str:
    """One paragraph for `Solution.message` and for the error that carries it."""
    if status is Status.UNBOUNDED:
        assert ray is not None
        return _unbounded(problem, ray)
    if status is Status.DIVERGED:
        return (
            f"{method} diverged although no ray shows the problem to be unbounded. AMP is made for "
            "independent columns; this F is probably correlated, or its columns have large means. "
            "Use method='cd' or 'auto'."
        )
    found = f"KKT violation {certificate.kkt:.1e} of lambda, duality gap {certificate.gap:.1e}"
    if status is Status.MAX_ITER:
        advice = {
            "amp": "The support flickers at the threshold or lambda is close to critical: "
            "allow polish=True, or use method='cd' or 'auto'.",
            "amp-paper": "Algorithm 1 often keeps flickering at the threshold: use method='amp', "
            "or accept a larger tol.",
        }.get(
            method,
            "Raise max_iter or tol; critical_lambda(F, eta) tells whether a minimiser exists.",
        )
        return f"{method} stopped before it converged: {found}. {advice}"
    if method == "amp-paper":
        return (
            f"Algorithm 1 reached a fixed point, which is the minimiser only to O(N^-1/2): {found}."
        )
    return f"Certified minimiser: {found}."


def _unbounded(problem: Problem, ray: np.ndarray) -> str:
    lam = problem.lam
    needed = float(problem.b @ ray) / float(np.abs(ray).sum())
    if np.count_nonzero(ray) == 1:
        cause = f"column {int(np.flatnonzero(ray)[0])} of F is zero and its noise exceeds lambda"
    else:
        cause = "the noise has a component outside the row space of F that exceeds lambda"
    return (
        f"The objective is unbounded below at lambda = {lam:.6g}: {cause}, and "
        "solution.ray is a direction of endless descent. "
        f"Remedies: raise lambda to at least {needed:.6g} "
        "(critical_lambda(F, eta) gives the exact value); "
        f"or lower the noise level to at most {lam / needed:.3g} of its present value; "
        "or choose a design that puts less noise on small columns, such as Gram or "
        "PowerLaw(gamma=1)."
    )
