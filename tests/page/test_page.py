from html.parser import HTMLParser

import pytest

from privasso.figures import figure
from privasso.page import Page


class Outline(HTMLParser):
    """Open tags that were never closed, and every address the document names."""

    VOID = frozenset({"meta", "img", "br", "hr"})

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(page):
    outline = Outline()
    outline.feed(page.html())
    return outline


HOSTILE = '<script>alert("x")</script> & <b>'


@pytest.fixture
def page():
    page = Page(HOSTILE)
    for name in ("one", "two", "three"):
        page.heading(name + HOSTILE)
    page.subheading(HOSTILE)
    page.paragraph(HOSTILE, kind="note")
    page.items([HOSTILE])
    page.code(HOSTILE)
    page.table(["a", "b"], [[HOSTILE, "good"]], numeric=["b"], classes={"good": "good"})
    drawing = figure(2, 1)
    drawing.subplots().plot([0, 1])
    page.figure(drawing, HOSTILE)
    return page


def test_tags_are_closed_and_text_is_escaped(page):
    outline = parsed(page)
    assert outline.open == []
    assert "script" not in page.html().replace("&lt;script&gt;", "").replace("&lt;/script&gt;", "")
    assert sum(HOSTILE in text for text in outline.text) == 14


def test_page_refers_to_nothing_outside(page):
    for address in parsed(page).addresses:
        assert address.startswith(("data:image/png;base64,", "#"))


def test_contents_lead_to_the_sections(page):
    targets = [a for a in parsed(page).addresses if a.startswith("#")]
    assert len(targets) == 3
    assert all(f'id="{target[1:]}"' in page.html() for target in targets)
