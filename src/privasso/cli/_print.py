"""Tables in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def print_table(
    titles: Sequence[str], lines: Iterable[Sequence[str]], title: str | None = None
) -> None:
    """Print lines under titles, the first column to the left and all others to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), title=title, title_justify="left")
    for k, name in enumerate(titles):
        table.add_column(name, justify="right" if k else "left", no_wrap=True)
    for line in lines:
        table.add_row(*line)
    Console(width=120, highlight=False).print(table)
