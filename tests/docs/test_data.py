"""Every number that was measured comes from a file in `docs/data`, which a command writes."""

import csv
import importlib.util
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
spec = importlib.util.spec_from_file_location("data", DOCS / "_ext" / "data.py")
assert spec is not None
assert spec.loader is not None
data = importlib.util.module_from_spec(spec)
spec.loader.exec_module(data)

PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("tutorials/*.md"))]
ROLE = re.compile(r"\{number\}`([^`]+)`")
#: Pages that are shown without Sphinx name the source of a number behind it.
REMARK = re.compile(r"([−<> ]*[\d.,]+)(?: %)?<!-- ([^;>]+;[^>]+?) -->")
TABLE = re.compile(r"^```\{results\} (\S+)\n((?::\w+:.*\n)*)```$", flags=re.MULTILINE)
#: A long table that a page only links to.
LINK = re.compile(r"\]\(data/([\w-]+)\.csv\)")
#: What only a measurement can say: a duration, a size in memory, a factor, an R².
MEASURED = re.compile(
    r"\d[\d.,]* ?(?:ms|µs|s|seconds?|minutes?|hours?|[GMK]i?B)(?![\w-])|\d\.\d+ times"
    r"|R² (?:of |is |was |reaches )?[−-]?[01]?\.\d+"
)
#: Phrases of that form which state a setting or a formula.
SETTINGS = {
    "benchmarks": (
        "1.2 times as fast as",
        "Dense matrices above 100 MB get one second more for\neach 100 MB",
        "15 seconds of the processor to find their tolerance",
        "a Parquet file of 400 MB",
    ),
    "binary": ("1.5 times that default",),
    "choose": ("0.5", "1.6", "2.7"),  # ε and its exponential
    "formats": ("256 MiB",),
    "reproduction": ("2605.01492",),
    "scale": ("24 GB of memory",),
    "wide": ("a best possible R² of 0.7",),
}
#: Pages whose numbers have no files yet; that of the claims is made of one, which has a test.
WITHOUT = {"claims"}


def name_of(page: Path) -> str:
    """The page's name in the documentation; that of the README."""
    return page.relative_to(DOCS if DOCS in page.parents else ROOT).with_suffix("").as_posix()


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """Text without code, formulas and numbers that have a source."""
    text = REMARK.sub("", ROLE.sub("", text_of(page)))
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]*\$", "", text, flags=re.DOTALL)
    parts = []
    for token in MarkdownIt().enable("table").parse(text):
        parts += [each.content for each in token.children or [] if each.type == "text"]
    return "\n".join(parts)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_numbers_and_tables_of_a_page_are_in_the_files(page):
    text = text_of(page)
    for source in ROLE.findall(text):
        assert data.number(source)
    for said, source in REMARK.findall(text):
        assert said.strip() == data.number(source), f"{page.name}: {source}"
    for name, options in TABLE.findall(text):
        given = dict(re.findall(r"^:(\w+): ?(.*)$", options, flags=re.MULTILINE))
        assert set(given) <= {"columns", "rows", "digits"}
        chosen = [data.parts(given.get(key, "")) for key in ("columns", "rows")]
        assert len(data.markdown(name, *chosen, given.get("digits", ""))) > 2
        assert name in data.commands()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_measured_number_is_without_a_source(page):
    found = prose(page)
    for phrase in SETTINGS.get(name_of(page), ()):
        assert phrase in found
        found = found.replace(phrase, "")
    cells = re.findall(r"^[<>−-]?\d+\.\d+(?: ± [\d.]+)?$", found, flags=re.MULTILINE)
    without = [match.group() for match in MEASURED.finditer(found)] + cells
    if name_of(page) in WITHOUT:
        assert without, f"{name_of(page)} can leave the list of pages without files"
    else:
        assert not without


def test_every_file_is_used_and_has_a_command_that_exists():
    files = {path.stem for path in (DOCS / "data").glob("*.csv")} - {"commands"}
    assert set(data.commands()) == files
    text = "\n".join(map(text_of, PAGES))
    used = {name for name, _ in TABLE.findall(text)}
    used |= {data.parts(source)[0] for source in ROLE.findall(text)}
    used |= {data.parts(source)[0] for _, source in REMARK.findall(text)}
    used |= set(LINK.findall(text))
    assert files <= used
    for command in data.commands().values():
        start, option, module, *_ = command.split()
        assert (start, option) == ("python", "-m")
        assert importlib.util.find_spec(module), command


def test_the_tutorial_on_reports_repeats_what_the_first_one_prints():
    """The first one's numbers are compared with what its commands print."""
    first, report = (text_of(DOCS / "tutorials" / f"{name}.md") for name in ("publish", "report"))
    repeated = re.findall(r"\d+\.\d+ %", report)
    assert len(set(repeated)) == 2
    assert all(said in first for said in repeated)


def test_a_cell_is_found_by_its_row_and_column(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "DATA", tmp_path)
    data.table.cache_clear()
    with (tmp_path / "fits.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["table", "ε", "R²"], ["a", "1", "0.5 ± 0.1"], ["b", "1", "1"]])
    assert data.number("fits; a; R²") == "0.5"
    assert data.number("fits; table=b; ε=1; R²") == "1"
    assert data.markdown("fits", ["R²", "ε => budget"], ["a"], "2")[::2] == [
        "| R² | budget |",
        "| 0.50 | 1 |",
    ]
    for wrong in ("fits; 1; R²", "fits; c; R²", "fits; a; R"):
        with pytest.raises(ValueError, match="fits"):
            data.number(wrong)
    data.table.cache_clear()
