"""Importing the package stays quick; what needs scikit-learn is imported on first use."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import privasso as pv


def test_every_public_name_is_there():
    assert set(pv.__all__) <= set(dir(pv))
    assert pv.__all__ == sorted(set(pv.__all__))
    for name in set(pv.__all__) - {"__version__"}:
        value = getattr(pv, name)
        if inspect.ismodule(value):
            assert value.__name__ == f"privasso.{name}"
            continue
        assert value.__name__ == name
        assert getattr(sys.modules[value.__module__], name) is value
        assert value.__module__.startswith("privasso.")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pv.nothing  # pyright: ignore[reportAttributeAccessIssue]


def test_type_checkers_find_the_same_names():
    stub = ast.parse(Path(pv.__file__).with_suffix(".pyi").read_text("utf-8"))
    found = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = {name.asname: node.module for node in found for name in node.names}
    assert sorted(filter(None, homes)) == pv.__all__
    for name, home in homes.items():
        assert getattr(pv, str(name)) is getattr(sys.modules[str(home)], str(name))


def test_every_submodule_is_there_without_being_imported_and_scikit_learn_is_not_loaded():
    code = (
        "import sys, privasso as pv; assert 'sklearn' not in sys.modules; "
        "[getattr(pv, name) for name in pv.__all__]; pv.theory, pv.noise; "
        "assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
