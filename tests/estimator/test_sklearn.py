"""The scikit-learn contract."""

import os
import subprocess
import sys

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import privasso as pv

# With so large an ε the noise is small enough for the checks that ask for a good fit, which a
# private estimator otherwise need not give. The labels of these checks have the variance 1.
LABEL_DP = pv.LabelDP(epsilon=1e5, delta=0.1, y_bounds=(-4.0, 4.0))

REPEATED = (
    "λ is M times the alpha of scikit-learn, and rows that are repeated or left out change M and "
    "the noise; tests/estimator/test_sample_weight.py compares at equal λ/M and without noise"
)


def deliberate(estimator):
    """Checks that fail on purpose, each with its reason."""
    reasons = {
        f"check_sample_weight_equivalence_on_{storage}_data": REPEATED
        for storage in ("dense", "sparse")
    }
    if estimator.privacy.formal:
        reasons["check_supervised_y_no_nan"] = (
            "the guarantee covers each label, and a refusal would tell what one of them is: a "
            "missing label counts as the middle of its bounds, an infinite one as a bound"
        )
    if not estimator.denoise:
        reasons["check_fit2d_1sample"] = (
            "one row leaves nine directions in which noise has no opponent: the problem is "
            "unbounded, which is an UnboundedError and not a ValueError, because the input is "
            "valid and the release is kept"
        )
    return reasons


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")  # the checks fit many times
@parametrize_with_checks(
    [
        pv.PrivateLasso(lam=0.1, privacy=LABEL_DP, random_state=0),
        pv.PrivateLasso(lam=0.1, privacy=pv.OnAverage(1e-3), random_state=0),
        pv.PrivateLasso(
            lam=0.1,
            privacy=LABEL_DP,
            noise="power:0.5",
            fit_intercept=False,
            method="cd",
            denoise=False,
            random_state=0,
        ),
    ],
    expected_failed_checks=deliberate,
)
def test_sklearn_check(estimator, check):
    if "array_api" not in str(check):  # skipped by scikit-learn; see the next test
        check(estimator)


ARRAY_API = """
from sklearn.utils.estimator_checks import estimator_checks_generator
import privasso as pv

for privacy in pv.LabelDP(1e4, 0.1, (-400.0, 400.0)), pv.OnAverage(1e-3):
    estimator = pv.PrivateLasso(lam=100.0, privacy=privacy, random_state=0)
    for copy, check in estimator_checks_generator(estimator):
        if "array_api" in str(check):
            check(copy)
"""


def test_arrays_of_numpy_through_the_array_api():
    # SciPy reads the switch when it is imported, so this needs a process of its own.
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-c", ARRAY_API], env=environment, check=True)


def test_privacy_has_no_default():
    with pytest.raises(ValueError, match="privacy must say what to protect: LabelDP"):
        pv.PrivateLasso().fit([[1.0], [2.0]], [1.0, 2.0])
