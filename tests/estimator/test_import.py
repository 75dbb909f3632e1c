"""Importing the package stays quick; what needs scikit-learn is imported on first use."""

import subprocess
import sys

import pytest

import privasso as pv


def test_every_public_name_is_there():
    assert set(pv.__all__) <= set(dir(pv))
    assert pv.__all__ == sorted(set(pv.__all__))
    for name in set(pv.__all__) - {"__version__"}:
        value = getattr(pv, name)
        assert value.__name__ == name
        assert getattr(sys.modules[value.__module__], name) is value
        assert value.__module__.startswith("privasso.")
    ours = {name for name, value in vars(pv).items() if _is_ours(value)}
    assert ours - {"__getattr__", "__dir__"} == set(pv.__all__) - {"__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pv.nothing  # pyright: ignore[reportAttributeAccessIssue]


def _is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).startswith("privasso")


def test_import_does_not_load_scikit_learn():
    code = (
        "import sys, privasso; assert 'sklearn' not in sys.modules; "
        "privasso.PrivateLasso; assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
