"""The reference: a page for each public name and each command, and links to them from prose.

Names are listed in `docs/reference/*.md`; `sphinx.ext.autosummary` writes a page for each. Options
of the commands are what the command line itself declares.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.autosummary import Autosummary
from sphinx.util.nodes import make_refnode

import privasso

DOCS = Path(__file__).parents[1]
#: Where the pages of names and of commands go, from `DOCS`.
NAMES, COMMANDS = "reference/names", "reference/commands"


def listed(text: str) -> list[str]:
    """Full names in the lists of a page of which each gets a page of its own."""
    lists = re.findall(r"^\.\. autosummary::\n((?: {3}.*\n|\n)*)", text, re.MULTILINE)
    lists = [one for one in lists if ":toctree:" in one]
    return [name for one in lists for name in re.findall(r"^ {3}([\w.]+)$", one, re.MULTILINE)]


@cache
def files() -> dict[str, str]:
    """The file of each public name.

    Names that differ in capitals only, such as Audit and audit, get files that differ in more.
    """
    found: dict[str, str] = {}
    for page in sorted((DOCS / "reference").glob("*.md")):
        for full in listed(page.read_text(encoding="utf-8")):
            name = full.rpartition(".")[2]
            if name.lower() in {other.lower() for other in found.values()}:
                name += "-class" if name[0].isupper() else "-function"
            found[full] = name
    return found


def typed(full: str) -> str:
    """A name as it is typed after `import privasso as pv`.

    >>> typed("privasso.noise.Gram"), typed("privasso.design.rows_needed")
    ('pv.Gram', 'pv.design.rows_needed')
    """
    _, room, name = full.split(".")
    return f"pv.{name}" if name in privasso.__all__ else f"pv.{room}.{name}"


@cache
def meant(code: str) -> str | None:
    """The public name that a piece of code in a sentence stands for.

    >>> meant("RecordDP(epsilon, delta)"), meant("pv.solve"), meant("est.solve"), meant("lam")
    ('privasso.privacy.RecordDP', 'privasso.solvers.solve', None, None)
    """
    code = re.sub(r"\(.*\)$", "", code)
    for full in files():
        _, room, name = full.split(".")
        forms = name, f"{room}.{name}", f"privasso.{name}", full, typed(full)
        if code in forms:
            return full
    return None


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


@cache
def commands() -> dict[str, Any]:
    """The commands by their names, as Typer declares them."""
    import typer

    from privasso.cli._app import build

    return dict(typer.main.get_command(build()).commands)  # pyright: ignore[reportAttributeAccessIssue]


def described(command: Any, path: str, mark: str) -> list[str]:
    """Lines of a command: usage, what it does, its options; then those of its own commands."""
    context = command.make_context(path, [], resilient_parsing=True)
    lines = [path, mark * len(path), ""]
    parts = inspect.cleandoc(command.help or "").split("\n\n")
    for part in parts:
        text = " ".join(part.split())
        example = re.fullmatch(r"(.*?:)? ?`(privasso [^`]*)`", text)
        if example:
            lines += [_plain(example[1]), ""] if example[1] else []
            lines += [".. code-block:: sh", "", *_wrapped(example[2]), ""]
        else:
            lines += [_plain(text), ""]
    within = getattr(command, "commands", {})
    if not within:
        lines += [f".. program:: {path}", ""]
        for each in command.get_params(context):
            form, said = each.get_help_record(context)
            if each.param_type_name == "argument":
                lines += [f"``{form}``", f"   {_plain(said)}", ""]
            else:
                lines += [f".. option:: {form}", "", f"   {_plain(said)}", ""]
    for name, each in within.items():
        lines += described(each, f"{path} {name}", "-")
    return lines


def _plain(text: str) -> str:
    """Help as reStructuredText: code in two backticks, and no other markup."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*|_\\])", r"\\\1", part) for part in parts[::2]]
    parts[::2] = [re.sub(r"(?<!\S)(--[a-z][a-z0-9-]*)", r"``\1``", part) for part in parts[::2]]
    return "``".join(parts)


def _wrapped(command: str) -> list[str]:
    """A command in lines that a page has room for, each but the first one step in."""
    lines = textwrap.wrap(
        command, 84, initial_indent="   ", subsequent_indent="       ", break_on_hyphens=False
    )
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


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
