"""An HTML page in one file, with style and images inside and no scripts."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from privasso._text import escaped
from privasso.figures import Figure, png

#: The page may show its own images and style; it loads nothing and runs nothing.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

#: Cells with more characters than this are not squeezed on narrow screens.
_LONG = 12


class Page:
    """An HTML document built from top to bottom.

    All text is escaped: a column named ``<script>`` is shown as that, and control characters are
    shown as in a Python string.

    `kind`: what kind of page it is, by which a later run knows a page that it may replace.
    """

    def __init__(self, title: str, kind: str = "page") -> None:
        self.title, self.kind = title, kind
        self._parts: list[str] = []
        self._contents: list[tuple[str, str]] = []
        self._tables = 0

    def heading(self, text: str) -> None:
        """Begin a section; it is listed under the title of the page."""
        anchor = f"section-{len(self._contents) + 1}"
        self._contents.append((anchor, text))
        self._add(f'<h2 id="{anchor}">{_safe(text)}</h2>')

    def subheading(self, text: str) -> None:
        """Begin a part of a section."""
        self._add(f"<h3>{_safe(text)}</h3>")

    def paragraph(self, text: str, *, kind: str = "") -> None:
        """Add a paragraph; `kind` is "", "lead", "note" or "warning"."""
        attribute = f' class="{_safe(kind)}"' if kind else ""
        self._add(f"<p{attribute}>{_safe(text)}</p>")

    def items(self, texts: Iterable[str]) -> None:
        """Add a list of sentences."""
        self._add("<ul>" + "".join(f"<li>{_safe(text)}</li>" for text in texts) + "</ul>")

    def code(self, text: str) -> None:
        """Add text in a fixed-width font, to be copied."""
        lines = "\n".join(_safe(line) for line in text.split("\n"))
        self._add(f'<pre tabindex="0"><code>{lines}</code></pre>')

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        numeric: Iterable[str] = (),
        classes: dict[str, str] | None = None,
    ) -> None:
        """Add a table of text.

        `numeric`: headings of the columns set flush right. `classes`: style class of a cell by its
        text: "good", "middling" or "bad".
        """
        self._tables += 1
        right = set(numeric)
        marks = [' class="number"' if column in right else "" for column in columns]
        heads = zip(columns, marks, strict=True)
        out = ["<table><thead><tr>"]
        out += [f'<th scope="col"{mark}>{_safe(column)}</th>' for column, mark in heads]
        out.append("</tr></thead><tbody>")
        for row in rows:
            out.append("<tr>")
            for cell, mark in zip(row, marks, strict=True):
                named = (classes or {}).get(cell)
                if named is None and not mark and len(cell) > _LONG:
                    named = "long"
                style = mark if named is None else f' class="{_safe(named)}"'
                out.append(f"<td{style}>{_safe(cell)}</td>")
            out.append("</tr>")
        # Keyboards can only scroll what they can reach.
        box = f'<div class="scroll" tabindex="0" role="region" aria-label="Table {self._tables}">'
        self._add(box + "".join(out) + "</tbody></table></div>")

    def figure(self, figure: Figure, caption: str, *, description: str = "") -> None:
        """Add a matplotlib figure; `description` is its text for screen readers."""
        self.image(png(figure), caption, description=description)

    def image(self, data: bytes, caption: str, *, description: str = "") -> None:
        """Add a PNG image."""
        text = base64.b64encode(data).decode("ascii")
        self._add(
            f'<figure><div class="picture" tabindex="0"><img alt="{_safe(description or caption)}" '
            f'src="data:image/png;base64,{text}"></div>'
            f"<figcaption>{_safe(caption)}</figcaption></figure>"
        )

    def html(self) -> str:
        """Return the document."""
        style = files("privasso.page").joinpath("style.css").read_text(encoding="utf-8")
        links = "".join(
            f'<li><a href="#{anchor}">{_safe(text)}</a></li>' for anchor, text in self._contents
        )
        contents = (
            f'<nav aria-label="Contents"><ul>{links}</ul></nav>' if len(self._contents) > 2 else ""
        )
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="generator" content="privasso {_safe(self.kind)}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            f"<title>{_safe(self.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
            f"<main>\n<h1>{_safe(self.title)}</h1>\n{contents}\n"
            + "\n".join(self._parts)
            + "\n</main>\n</body>\n</html>\n"
        )

    def _add(self, part: str) -> None:
        self._parts.append(part)


def _safe(text: str) -> str:
    return escape(escaped(text))
