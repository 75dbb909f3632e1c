"""A limit of wall time that long computations share."""

from __future__ import annotations

import time
from collections.abc import Callable

from privasso._validation import positive_float


class Clock:
    """The time since a computation began, and whether its limit has passed.

    A long loop asks `expired` once per iteration and then returns the best that it has. So each
    iteration must be short, at most some tenths of a second. Then Ctrl-C takes effect quickly too,
    because Python raises `KeyboardInterrupt` between the iterations and not inside compiled code.

    `limit`: seconds from now; None for no limit. `now`: the present time in seconds, for tests.
    """

    def __init__(
        self, limit: float | None = None, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit = None if limit is None else positive_float("time_limit", limit)
        self._now, self._start = now, now()

    def elapsed(self) -> float:
        """Seconds since the clock was made."""
        return self._now() - self._start

    def expired(self) -> bool:
        """Whether the limit has passed."""
        return self.limit is not None and self.elapsed() >= self.limit

    def stop(self) -> None:
        """Let the limit pass now, so that other threads that share this clock end early."""
        self.limit = 0.0

    def remaining(self) -> float | None:
        """Seconds to the limit, which another clock may have as its limit; None without a limit.

        After the limit it is a nanosecond, because a limit is positive.
        """
        return None if self.limit is None else max(self.limit - self.elapsed(), 1e-9)

    def __repr__(self) -> str:
        return f"Clock({self.limit!r})"
