"""`solve_path`: the perturbed LASSO for many λ."""

from __future__ import annotations

from typing import Any

import numpy as np

from privasso._validation import real_array
from privasso.operators import as_operator
from privasso.solvers._many import Solutions, solve_many


def solve_path(
    F: Any,
    y: Any,
    lams: Any,
    eta: Any = None,
    *,
    tol: float = 1e-8,
    throw: bool = True,
    time_limit: float | None = None,
) -> Solutions:
    """Minimise ½‖y − Fx‖² + λ_k‖x‖₁ + ηᵀx for λ_1, …, λ_K.

    Each solve starts from the minimiser at the next larger λ, on the columns that were needed
    there, and has a certificate of its own. Where the columns look independent, all λ share
    batched AMP and one Gram matrix instead, as in `solve_many`.

    Parameters
    ----------
    F, y, eta : as in `solve`.
    lams : array_like, shape (K,)
        Values of λ > 0, in any order.
    tol, throw, time_limit : as in `solve_many`.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> pv.solve_path(np.eye(2), [3.0, -2.0], [1.0, 2.5]).x
    array([[ 2. ,  0.5],
           [-1. ,  0. ]])
    """
    op = as_operator(F)
    lams = real_array("lams", lams, ndim=1)
    n = op.shape[1]
    eta = np.zeros(n) if eta is None else real_array("eta", eta, shape=(n,))
    etas = np.broadcast_to(eta[:, None], (n, lams.size))
    return solve_many(op, y, lams, etas, tol=tol, throw=throw, time_limit=time_limit)
