"""Interrupts of compiled calls."""

import numpy as np
import pytest

from privasso._threads import compiled


def fails(cause):
    def task():
        try:
            raise cause
        except BaseException as error:
            raise SystemError("returned a result with an exception set") from error

    return task


def test_an_interrupt_that_numba_wrapped_is_an_interrupt_again():
    with pytest.raises(KeyboardInterrupt):
        compiled(fails(KeyboardInterrupt()))


def test_other_errors_stay_what_they_are():
    with pytest.raises(SystemError):
        compiled(fails(ValueError("something else")))
    with pytest.raises(np.linalg.LinAlgError):
        compiled(lambda: np.linalg.cholesky(-np.eye(2)))
