"""Every public name is in the reference, with an example that the tests run."""

import importlib
import inspect
import operator
import re
from pathlib import Path

import pytest

import privasso as pv

DOCS = Path(__file__).parents[2] / "docs"
SUMMARY = (DOCS / "reference.md").read_text(encoding="utf-8")
REFERENCE = "\n".join(
    page.read_text(encoding="utf-8") for page in sorted((DOCS / "reference").glob("*.md"))
)
NAMES = [name for name in pv.__all__ if name != "__version__"]
NAMES += [f"attacks.{name}" for name in pv.attacks.__all__]

#: Rooms that programs may use, all of whose names are documented.
ROOMS = (
    "accounting", "artefact", "attacks", "blocks", "design", "encoding", "estimator", "exports",
    "fit", "forecast", "ledger", "model", "noise", "operators", "privacy", "problem", "scales",
    "solvers", "tables", "theory",
)  # fmt: skip
#: Rooms that serve the command line and its pages, of which the reference says so.
OTHERS = ("cli", "examples", "explore", "figures", "page", "paper", "report")
#: Rooms that only other rooms use: they have no entry in the reference.
INNER = ("queries",)


def is_listed(home, name):
    """Whether a directive of the reference describes this name of the module."""
    if re.search(rf"auto(class|function|exception):: {home}\.{name}\n", REFERENCE):
        return True
    listed = re.search(rf"automodule:: {home}\n   :members:(.*?)(?=\n\n|\n```)", REFERENCE, re.S)
    # Names that a module imports on demand are not among those that automodule finds.
    if listed is None or name not in vars(importlib.import_module(home)):
        return False
    chosen, _, left_out = listed[1].partition(":exclude-members:")
    chosen = re.findall(r"\w+", re.split(r":inh|:member-o", chosen)[0])
    return name not in re.findall(r"\w+", left_out) and (not chosen or name in chosen)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_in_the_reference(name):
    found = operator.attrgetter(name)(pv)
    if inspect.ismodule(found):
        assert f"automodule:: {found.__name__}\n" in REFERENCE, f"{found.__name__} is missing"
        return
    home = found.__module__.rpartition("._")[0]
    assert is_listed(home, name.rpartition(".")[2]), f"{name} is missing from {home}"
    if "." not in name:
        assert f"   ~{home}.{name}\n" in SUMMARY, f"{name} is missing from the summary"
    assert ">>>" in (inspect.getdoc(found) or ""), f"{name} has no example"


def test_every_room_is_one_for_programs_or_one_for_pages():
    rooms = {file.parent.name for file in Path(pv.__file__).parent.glob("*/__init__.py")}
    assert rooms == {*ROOMS, *OTHERS, *INNER}
    for room in OTHERS:
        assert f"privasso.{room}" in REFERENCE, f"the reference does not mention {room}"


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_of_a_room_is_in_the_reference_with_an_example(room):
    module = importlib.import_module(f"privasso.{room}")
    for name in module.__all__:
        found = getattr(module, name)
        of_privasso = str(getattr(found, "__module__", "")).startswith("privasso.")
        if not (of_privasso and callable(found)):  # a constant or a type: a row of a table
            assert f"| `{room}.{name}` |" in REFERENCE, f"{room}.{name} is in no table"
            continue
        assert is_listed(f"privasso.{room}", name), f"{room}.{name} is not in the reference"
        # A class without a docstring of its own must not pass with that of its base.
        assert ">>>" in (found.__doc__ or ""), f"{room}.{name} has no example"
