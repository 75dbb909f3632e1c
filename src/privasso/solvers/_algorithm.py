"""An algorithm as a value, and the registry of algorithms by name.

An algorithm is a frozen dataclass: its fields are its options, and its one verb takes a problem to
an `Outcome`. To add one, write a file with a class that derives from `Algorithm` and is decorated
with `register`, and import it in ``privasso/solvers/__init__.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from privasso._clock import Clock
from privasso._validation import real_float
from privasso.problem import NO_CERTIFICATE, Certificate, Problem, certify_point
from privasso.solvers._solution import Status, Step


@dataclass(frozen=True, eq=False)
class Outcome:
    """Where an algorithm ended.

    - `x`, `status`, `ray`: as in `Solution`.
    - `steps`: one entry for each iteration.
    - `certificate`: what is known about x.
    - `by`: the algorithm that found x, if it is not the one that was asked (see `Auto`).
    """

    x: np.ndarray
    status: Status
    steps: list[Step]
    certificate: Certificate = NO_CERTIFICATE
    ray: np.ndarray | None = None
    by: Algorithm | None = None

    @staticmethod
    def unbounded(problem: Problem, ray: np.ndarray, steps: list[Step]) -> Outcome:
        """The outcome for a problem that `ray` proves to have no minimiser."""
        nowhere = np.full(problem.shape[1], np.nan)
        return Outcome(nowhere, Status.UNBOUNDED, steps, ray=ray)

    @staticmethod
    def at_limit(problem: Problem, x: np.ndarray, steps: list[Step]) -> Outcome:
        """The outcome x of a solve whose time was over, with a certificate that takes one pass."""
        certificate = certify_point(problem, x, anchors=False)
        return Outcome(x, Status.TIME_LIMIT, steps, certificate)


class Algorithm(ABC):
    """What `solve` needs from an algorithm.

    Attributes
    ----------
    name : str
        The name under which it is registered, and `Solution.method`.
    advice : mapping from Status to str
        For each status that is not CONVERGED or UNBOUNDED and in which it may end: why that
        happens, and what to do.

    Examples
    --------
    Proximal gradient steps of length 1/‖F‖²:

    >>> import numpy as np
    >>> from privasso.problem import certify_point
    >>> @dataclass(frozen=True)
    ... class ProximalGradient(Algorithm):
    ...     name = "proximal-gradient"
    ...     n_steps: int = 200
    ...
    ...     def minimise(self, problem, tol, clock):
    ...         x = np.zeros(problem.shape[1])
    ...         length = 1 / np.linalg.norm(problem.op.toarray(), 2) ** 2
    ...         for _ in range(self.n_steps):
    ...             if clock.expired():
    ...                 return Outcome.at_limit(problem, x, [])
    ...             u = x + length * problem.correlation(x)
    ...             x = u - np.clip(u, -length * problem.lam, length * problem.lam)
    ...         certificate = certify_point(problem, x)
    ...         status = Status.CONVERGED if certificate.proves(tol) else Status.MAX_ITER
    ...         return Outcome(x, status, [], certificate)
    >>> from privasso import solve
    >>> F, y = np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([3.0, 1.0])
    >>> solve(F, y, 0.5, method=ProximalGradient()).x.round(6)
    array([1.  , 0.75])
    """

    name: ClassVar[str]
    advice: ClassVar[Mapping[Status, str]] = {}

    @abstractmethod
    def minimise(self, problem: Problem, tol: float, clock: Clock) -> Outcome:
        """Minimise until the certificate proves x optimal to `tol`, or say why that failed.

        `solve` has checked the arguments before, and has made sure that no zero column shows the
        problem to be unbounded. BLAS runs on one thread. Once the clock has expired, the outcome
        is the best point so far with the status `Status.TIME_LIMIT`; it is to be asked between
        steps of at most some tenths of a second.
        """


_REGISTRY: dict[str, type[Algorithm]] = {}

_Class = TypeVar("_Class", bound=type[Algorithm])


def register(algorithm: _Class) -> _Class:
    """Make an algorithm available to `solve` under its name, with default options."""
    if algorithm.name in _REGISTRY:
        raise ValueError(f"there already is an algorithm with the name {algorithm.name!r}")
    _REGISTRY[algorithm.name] = algorithm
    return algorithm


def algorithm_for(method: str | Algorithm) -> Algorithm:
    """Return the algorithm that a name or a value stands for."""
    if isinstance(method, Algorithm):
        return method
    if isinstance(method, str) and method in _REGISTRY:
        return _REGISTRY[method]()
    raise ValueError(
        f"method must be an Algorithm or one of {', '.join(_REGISTRY)}, not {method!r}"
    )


def checked_damping(damping: float) -> float:
    """Refuse a weight on the old value that is not in [0, 1)."""
    number = real_float("damping", damping)
    if not 0.0 <= number < 1.0:
        raise ValueError(f"damping is the weight on the old value, in [0, 1), not {number!r}")
    return number
