"""What pages write to take numbers and tables from `docs/data`: `{number}` and `{results}`.

CONTRIBUTING.md says how both are written.
"""

from __future__ import annotations

import re
from typing import Any

from data import commands, markdown, number, parts
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole


class NumberRole(SphinxRole):
    """A cell in a sentence."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            return [nodes.Text(number(self.text))], []
        except (OSError, ValueError) as error:
            message: Any = self.inliner.reporter.error(str(error), line=self.lineno)
            return [], [message]


class DataTable(SphinxDirective):
    """Rows and columns of a file, with a link to it and the command that writes it."""

    required_arguments = 1
    option_spec = {  # noqa: RUF012
        "columns": directives.unchanged,
        "rows": directives.unchanged,
        "digits": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        try:
            columns, conditions = (parts(self.options.get(key, "")) for key in ("columns", "rows"))
            lines = markdown(name, columns, conditions, self.options.get("digits", ""))
            command = re.sub(r"(--tables)( [a-z][\w-]*)+", r"\1 …", commands()[name])
        except (OSError, KeyError, ValueError) as error:
            raise self.error(f"{name}: {error}") from error
        source = f"{{download}}`{name}.csv </data/{name}.csv>`, written by `{command}`"
        lines += ["", "```{rst-class} source", "```", "", source]
        holder = nodes.container()
        self.content = type(self.content)(lines, self.get_source_info()[0])
        self.state.nested_parse(self.content, self.content_offset, holder)
        return holder.children


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_role("number", NumberRole())
    app.add_directive("results", DataTable)
    return {"parallel_read_safe": True}
