"""Pages of the reference, one for each public name and each command, and links to them from prose.

`sphinx.ext.autosummary` writes the page of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from reference import COMMANDS, DOCS, NAMES, commands, described, files, meant, typed
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.autosummary import Autosummary
from sphinx.util.nodes import make_refnode


class Names(Autosummary):
    """A list of names as they are typed."""

    def get_items(self, names: list[str]) -> list[tuple[str, str | None, str, str]]:
        items = super().get_items(names)
        return [(typed(real), sig, summary, real) for _, sig, summary, real in items]


#: Code in these stays as it is.
_NO_LINKS = nodes.reference, nodes.title, addnodes.desc_signature, addnodes.pending_xref


def _parents(node: nodes.Node) -> Iterator[nodes.Node]:
    """What a node is in, from the nearest outwards."""
    while (parent := node.parent) is not None:
        yield parent
        node = parent


def link_code(app: Sphinx, doctree: nodes.document) -> None:
    """Link public names and commands in sentences to their pages, once in a section."""
    here = app.env.current_document.docname
    seen = set()
    for code in list(doctree.findall(nodes.literal)):
        parents = list(_parents(code))
        if any(isinstance(each, _NO_LINKS) for each in parents):
            continue
        section = next((each for each in parents if isinstance(each, nodes.section)), doctree)
        text = code.astext()
        full, command = meant(text), re.fullmatch(r"privasso ([a-z]+)", text)
        if full is not None and here != f"{NAMES}/{files()[full]}":
            link = addnodes.pending_xref("", refdomain="py", reftype="obj", reftarget=full)
        elif command and command[1] in commands() and here != f"{COMMANDS}/{command[1]}":
            page = f"/{COMMANDS}/{command[1]}"
            link = addnodes.pending_xref(
                "", refdomain="std", reftype="doc", reftarget=page, refexplicit=True
            )
        else:
            continue
        if (id(section), text) in seen:
            continue
        seen.add((id(section), text))
        link["refdoc"] = here
        code.replace_self(link)
        link += code


def find_name(app: Sphinx, env: Any, node: Any, content: Any) -> nodes.reference | None:
    """The page of a name that a docstring mentions without its room."""
    if node.get("refdomain") != "py" or (full := meant(node["reftarget"])) is None:
        return None
    page = f"{NAMES}/{files()[full]}"
    if node.get("refdoc") == page:
        return None
    return make_refnode(app.builder, node["refdoc"], page, full, content, typed(full))


def write_commands(app: Sphinx) -> None:
    """Write a page for each command; one that did not change keeps its time."""
    folder = DOCS / COMMANDS
    folder.mkdir(exist_ok=True)
    wanted = {f"{name}.rst": each for name, each in commands().items()}
    for file in folder.iterdir():
        if file.name not in wanted:
            file.unlink()
    for name, each in wanted.items():
        text = "\n".join(described(each, f"privasso {Path(name).stem}", "="))
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def remove_former_names(app: Sphinx) -> None:
    """Remove pages of names that are public no more."""
    for file in (DOCS / NAMES).glob("*.rst"):
        if file.stem not in files().values():
            file.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("autosummary", Names, override=True)
    app.connect("builder-inited", write_commands, priority=100)
    app.connect("builder-inited", remove_former_names, priority=100)
    app.connect("doctree-read", link_code)
    app.connect("missing-reference", find_name)
    return {"parallel_read_safe": True}
