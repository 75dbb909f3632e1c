"""Importing the package stays quick; what needs scikit-learn is imported on first use."""

import subprocess
import sys

import pytest

import privasso as pv


def test_every_public_name_is_there():
    assert set(pv.__all__) <= set(dir(pv))
    for name in pv.__all__:
        assert getattr(pv, name) is getattr(pv, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pv.nothing  # pyright: ignore[reportAttributeAccessIssue]


def test_import_does_not_load_scikit_learn():
    code = (
        "import sys, privasso; assert 'sklearn' not in sys.modules; "
        "privasso.PrivateLasso; assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
