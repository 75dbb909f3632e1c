"""Every public name is in the reference, with an example that the tests run."""

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


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_in_the_reference(name):
    found = operator.attrgetter(name)(pv)
    home = found.__name__ if inspect.ismodule(found) else found.__module__.rpartition("._")[0]
    listed = re.search(rf"automodule:: {home}\n   :members:(.*?)(?=\n\n|\n```)", REFERENCE, re.S)
    assert listed, f"{home} is missing"
    if inspect.ismodule(found):
        return
    words = listed[1].partition(":exclude")[0].partition(":inh")[0].partition(":member-o")[0]
    chosen = re.findall(r"\w+", words)
    assert not chosen or name.rpartition(".")[2] in chosen, (
        f"{name} is missing from the members of {home}"
    )
    if "." not in name:
        assert f"   ~{home}.{name}\n" in SUMMARY, f"{name} is missing from the summary"
    assert ">>>" in (inspect.getdoc(found) or ""), f"{name} has no example"
