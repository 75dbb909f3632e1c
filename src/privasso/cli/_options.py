"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, get_args, get_type_hints

import typer

from privasso._documents import DocumentError
from privasso._text import escaped, json_text
from privasso._types import Passed

#: What commands read.
DATA = "CSV, TSV, Parquet, Arrow/Feather or NPZ file."
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON; null stands for what is not finite.")
]

Force = Annotated[
    bool, typer.Option("--force", help="Replace files that exist, whatever they are.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but errors and warnings.", metavar="")
]

#: Printed with every on-average KL divergence.
NO_BOUND = "OnAveKL is an average under this model, not an ε: it bounds nothing for any one person."


def option(help: str, default: Passed = None, metavar: str | None = None) -> Passed:
    """An option with the name of its field or parameter; the default ... asks for a value."""
    return dataclasses.field(default=default, metadata={"help": help, "metavar": metavar})


def argument(help: str, default: Passed = ...) -> Passed:
    """A value without a name, in the place of its field or parameter."""
    metadata = {"help": help, "show_default": False, "positional": True}
    return dataclasses.field(default=default, metadata=metadata)


def option_name(field: str) -> str:
    """Return the option of a field.

    >>> option_name("y_bounds")
    '--y-bounds'
    """
    return "--" + field.replace("_", "-")


def parameters_of(group: Passed, some: str | None = None) -> list[inspect.Parameter]:
    """The parameters of a command, or of a dataclass of options, with Typer's annotations.

    `some` are the names of those that are wanted, if not all.

    >>> @dataclasses.dataclass
    ... class Group:
    ...     lam: float = option("Regularisation.", 0.2)
    >>> parameters_of(Group)[0].annotation.__metadata__[0].help
    'Regularisation.'
    """
    if dataclasses.is_dataclass(group):
        given = {field.name: field for field in dataclasses.fields(group)}
    else:
        given = {name: one.default for name, one in inspect.signature(group).parameters.items()}
    hints = get_type_hints(group, include_extras=True)
    names = given if some is None else some.split()
    return [_parameter(name, hints[name], given[name]) for name in names]


def _parameter(name: str, hint: object, default: object) -> inspect.Parameter:
    if isinstance(default, dataclasses.Field):
        more, default = dict(default.metadata), default.default
        if more.pop("positional", False):
            hint = Annotated[hint, typer.Argument(**more)]
        elif more:
            hint = Annotated[hint, typer.Option(option_name(name), **more)]
    if get_args(hint)[:1] == (bool,):
        get_args(hint)[1].metavar = ""  # so that its help does not say that it takes a value
    if default is ... or default is dataclasses.MISSING:
        default = inspect.Parameter.empty
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=hint)


@contextlib.contextmanager
def named(what: object, kind: type[ValueError] = DocumentError) -> Iterator[None]:
    """Begin the sentence of an error of that kind with what is wrong, such as a file."""
    try:
        yield
    except kind as error:
        raise ValueError(f"{escaped(what)}: {error}") from None


def tell(what: str | dict[str, object]) -> None:
    """Print a text, or an object as JSON in one line."""
    print(json_text(what) if isinstance(what, dict) else what)


def check_ending(option: str, path: Path | None, *endings: str) -> None:
    """Refuse a file whose ending does not say what to write.

    >>> check_ending("--out", Path("a.txt"), ".html", ".json")
    Traceback (most recent call last):
    ValueError: --out needs a file that ends in .html or .json, not a.txt
    """
    if path is not None and path.suffix.lower() not in endings:
        *others, last = endings
        known = f"{', '.join(others)} or {last}" if others else last
        raise ValueError(f"{option} needs a file that ends in {known}, not {escaped(path)}")
