"""A limit of wall time."""

import pytest

from privasso._clock import Clock


def test_without_a_limit_a_clock_never_expires():
    times = iter([0.0, 1e9])
    clock = Clock(now=lambda: next(times))
    assert not clock.expired()
    assert clock.remaining() is None
    assert clock.elapsed() == 1e9


def test_a_clock_expires_when_its_limit_is_reached_and_stays_so():
    times = iter([5.0, 5.0, 6.9, 7.0, 7.5, 8.0])
    clock = Clock(2.0, now=lambda: next(times))
    assert clock.remaining() == 2.0
    assert not clock.expired()
    assert clock.expired()
    assert 0.0 < (clock.remaining() or 0.0) < 1e-6
    assert clock.expired()


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), float("inf"), "soon"])
def test_a_limit_is_a_positive_number(limit):
    with pytest.raises((TypeError, ValueError), match="time_limit"):
        Clock(limit)
