"""The reference lists the public names: few, with examples, and all that a page shows.

The lists in `docs/reference/*.md` are the one list of them, of which each name gets a page. What a
room exports beyond it serves other rooms.
"""

import importlib
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import privasso as pv
from privasso.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SUMMARY = (DOCS / "reference.md").read_text(encoding="utf-8")
#: More doors than this, and nobody finds the one to open.
MOST_NAMES = 110


def listed():
    """Yield (module, name) for each name in a list that makes pages of the reference."""
    for page in sorted((DOCS / "reference").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"^\.\. auto(?!summary)", text, re.MULTILINE), (
            f"{page.name} describes a name itself, which then has no page"
        )
        for block in re.findall(r"^\.\. autosummary::\n((?: +.*\n|\n)*)", text, re.MULTILINE):
            options, _, names = block.partition("\n\n")
            assert "   :toctree: names" in options.splitlines(), f"{page.name}: names without pages"
            for line in names.splitlines():
                home, _, name = line.strip().rpartition(".")
                yield home, name


spec = importlib.util.spec_from_file_location("reference", DOCS / "_ext" / "reference.py")
assert spec is not None
assert spec.loader is not None
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

PUBLIC = list(listed())
TOP = [name for name in pv.__all__ if name != "__version__"]
TOP = [name for name in TOP if not inspect.ismodule(getattr(pv, name))]

PAGES = [page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md"]
PAGES += [page for page in DOCS.rglob("*.md") if page.parent.name in {"docs", "tutorials"}]
PAGES += DOCS.glob("gallery/*.py")


def test_the_public_names_are_few_and_listed_once():
    assert len(set(PUBLIC)) == len(PUBLIC) <= MOST_NAMES


def test_the_pages_of_the_reference_are_of_the_public_names():
    assert list(reference.files()) == [f"{home}.{name}" for home, name in PUBLIC]
    files = [file.lower() for file in reference.files().values()]
    assert len(set(files)) == len(files)  # also where capitals do not distinguish files


def test_the_pages_of_commands_have_every_option_of_the_help(capsys):
    def options(text):
        return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text))

    for name, command in reference.commands().items():
        page = "\n".join(reference.described(command, f"privasso {name}", "="))
        for path in ([name, each] for each in getattr(command, "commands", {"": None})):
            assert main([*filter(None, path), "--help"]) == 0
            shown = options(capsys.readouterr().out)
            assert shown
            assert shown <= options(page)


def test_code_in_a_sentence_is_linked_where_it_is_a_public_name():
    assert reference.meant("pv.Gram") == reference.meant("Gram") == "privasso.noise.Gram"
    assert reference.meant("pv.design.save_design(best)") == "privasso.design.save_design"
    assert reference.meant("est.save") is reference.meant("lam") is None


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
