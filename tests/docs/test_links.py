"""The form of links to other sites, which no test may open."""

import importlib.util
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("check", ROOT / "docs" / "check.py")
assert spec is not None
assert spec.loader is not None
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("https://arxiv.org/abs/2605.01492", None),
        ("https://doi.org/10.1145/2976749.2978318", None),
        ("mailto:someone@example.org", None),
        ("http://example.org/", "is not https"),
        ("https://localhost/page", "names no host"),
        ("https://example.org/a b", "must be written as a code"),
        ("https://example.org/page).", "ends in punctuation"),
        ("https://arxiv.org/abs/2605.1", "is no paper of arXiv"),
        ("https://doi.org/2976749", "is no DOI"),
    ],
)
def test_the_form_of_an_address(address, problem):
    found = check.malformed(address)
    assert found == problem or (problem is not None and problem in found)


def test_every_link_of_every_page_has_a_good_form():
    seen = 0
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for token in MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8")):
            for child in token.children or []:
                address = str(child.attrGet("href") or child.attrGet("src") or "")
                if ":" in address.partition("/")[0]:
                    seen += 1
                    assert check.malformed(address) is None, f"{page.name}: {address}"
    assert seen > 5
