"""The reference lists the public names: few, with examples, and all that a page shows.

The directives of `docs/reference/*.md` are the one list of them. What a room exports beyond it
serves other rooms.
"""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import privasso as pv

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SUMMARY = (DOCS / "reference.md").read_text(encoding="utf-8")
#: More doors than this, and nobody finds the one to open.
MOST_NAMES = 110


def listed():
    """Yield (module, name) for each name that a directive of the reference describes."""
    for page in sorted((DOCS / "reference").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for home, name in re.findall(
            r"^\.\. auto(?:class|function|exception):: ([\w.]+)\.(\w+)$", text, re.MULTILINE
        ):
            yield home, name
        for home, options in re.findall(
            r"^\.\. automodule:: ([\w.]+)\n((?: {3,}\S.*\n)*)", text, re.MULTILINE
        ):
            members = re.match(r" +:members:((?:.*\n {6,}\S)*.*\n)", options)
            assert members is not None, f"{page.name}: {home} does not say which names are public"
            for name in re.findall(r"\w+", members[1]):
                yield home, name


PUBLIC = list(listed())
TOP = [name for name in pv.__all__ if name != "__version__"]
TOP = [name for name in TOP if not inspect.ismodule(getattr(pv, name))]

PAGES = [page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md"]
PAGES += [page for page in DOCS.rglob("*.md") if page.parent.name in {"docs", "tutorials"}]
PAGES += DOCS.glob("gallery/*.py")


def test_the_public_names_are_few_and_listed_once():
    assert len(set(PUBLIC)) == len(PUBLIC) <= MOST_NAMES


@pytest.mark.parametrize(("home", "name"), PUBLIC)
def test_a_public_name_is_in_its_room_and_has_an_example(home, name):
    module = importlib.import_module(home)
    assert name in module.__all__
    # A class without a docstring of its own must not pass with that of its base.
    assert ">>>" in (getattr(module, name).__doc__ or ""), f"{home}.{name} has no example"


@pytest.mark.parametrize("name", TOP)
def test_a_name_of_the_package_is_in_the_reference_and_its_summary(name):
    home = getattr(pv, name).__module__.rpartition("._")[0]
    assert (home, name) in PUBLIC
    assert f"   ~{home}.{name}\n" in SUMMARY, f"{name} is missing from the summary"


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.stem)
def test_what_a_page_takes_from_a_room_is_public(page):
    text = page.read_text(encoding="utf-8")
    used = set(re.findall(r"\b(?:pv|privasso)\.([a-z]\w*)\.([A-Za-z]\w*)", text))
    for room, names in re.findall(r"\bfrom privasso\.([a-z]\w*) import (\([^)]*\)|.*)", text):
        used |= {(room, name) for name in re.findall(r"[A-Za-z]\w*", names)}
    for room in {home.rpartition(".")[2] for home, _ in PUBLIC}:
        known = importlib.import_module(f"privasso.{room}").__all__
        used |= {(room, name) for name in re.findall(rf"`{room}\.(\w+)", text) if name in known}
    assert used <= {(home.rpartition(".")[2], name) for home, name in PUBLIC}
