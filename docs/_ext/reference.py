"""The reference: which names are public, and what a page of a command says.

Names are listed in `docs/reference/*.md`. Options of the commands are what the command line itself
declares.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

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

    >>> typed("privasso.noise.Gram"), typed("privasso.design.save_design")
    ('pv.Gram', 'pv.design.save_design')
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
