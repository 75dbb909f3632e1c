"""What every kind of private fit publishes does not change unnoticed."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import fits

PINNED = json.loads(fits.FILE.read_text())


@pytest.mark.parametrize("name", fits.FITS)
def test_what_a_fit_publishes(name):
    """Numbers agree but for the rounding of another machine, and sentences to the letter."""
    found, pinned = fits.published(name), PINNED[name]
    scale = 1e-6 * max(map(abs, pinned["coef"]))
    np.testing.assert_allclose(found["coef"], pinned["coef"], rtol=1e-6, atol=scale)
    np.testing.assert_allclose(found["intercept"], pinned["intercept"], rtol=1e-6, atol=scale)
    if pinned["errors"] is not None:
        np.testing.assert_allclose(found["errors"], pinned["errors"], rtol=1e-6)
    numbers, expected = (numbers_of(one["guarantee"]) for one in (found, pinned))
    assert found["guarantee"] == pinned["guarantee"]
    assert numbers.keys() == expected.keys()
    for key, value in expected.items():
        assert numbers[key] == pytest.approx(value, rel=1e-9), key


def numbers_of(guarantee):
    """The numbers, which are taken out of the statement and of its losses."""
    found = guarantee.pop("parameters")
    for k, loss in enumerate(guarantee.get("losses", ())):
        for name in [name for name, value in loss.items() if isinstance(value, float)]:
            found[f"{name} of loss {k}"] = loss.pop(name)
    return found
