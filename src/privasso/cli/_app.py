"""The application: its commands, and how errors are reported.

A command file holds one function whose defaults are options; it imports what it computes with
inside the function, so that ``--help`` stays quick. Add it to `COMMANDS`, or several commands under
one name to `GROUPS`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, TextIO, cast, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from privasso._text import escaped
from privasso._types import Foreign
from privasso._version import __version__
from privasso.cli._audit import audit
from privasso.cli._bounds import bounds
from privasso.cli._demo import demo
from privasso.cli._design import design
from privasso.cli._evaluate import evaluate
from privasso.cli._explore import explore
from privasso.cli._export import export
from privasso.cli._fit import INTERVAL_VALUES, fit
from privasso.cli._ledger import COMMANDS as LEDGER
from privasso.cli._options import Quiet, parameters_of
from privasso.cli._predict import predict
from privasso.cli._progress import Pipe, silence
from privasso.cli._reproduce import reproduce
from privasso.cli._theory import theory

COMMANDS = [demo, explore, design, bounds, fit, predict, evaluate, export, audit, theory, reproduce]
#: What several commands under one name are for, and these.
GROUPS = {"ledger": ("Keep a privacy budget that several fits share.", LEDGER)}

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


def _plain(option: Foreign) -> Foreign:
    """The option --help, of which no page says that it takes a value."""
    if option is not None:
        option.metavar = ""
    return option


class _Command(TyperCommand):
    def get_help_option(self, ctx):
        return _plain(super().get_help_option(ctx))

    def parse_args(self, ctx, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _with_values(args))


def _with_values(args: list[str]) -> list[str]:
    """Add the value of --intervals where there is none.

    >>> _with_values(["data.csv", "--intervals", "--out", "m.json"])
    ['data.csv', '--intervals', 'both', '--out', 'm.json']
    """
    found = list(args)
    for k in reversed([k for k, word in enumerate(args) if word == "--intervals"]):
        if not found[k + 1 :] or found[k + 1].startswith("-"):
            found.insert(k + 1, INTERVAL_VALUES[0])
    return found


class _Group(TyperGroup):
    def get_help_option(self, ctx):
        return _plain(super().get_help_option(ctx))


def build() -> typer.Typer:
    """Return the application with all commands."""
    app = typer.Typer(
        name="privasso",
        cls=_Group,
        help="Private LASSO for data whose columns have very different scales.",
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(invoke_without_command=True)
    def root(
        context: typer.Context,
        version: Annotated[
            bool,
            typer.Option("--version", help="Show the version and exit.", is_eager=True, metavar=""),
        ] = False,
    ) -> None:
        if version:
            print(f"privasso {__version__}")
            raise typer.Exit
        _show_help(context)

    _add(app, COMMANDS)
    for name, (words, commands) in GROUPS.items():
        group = typer.Typer(
            cls=_Group, help=words, callback=_show_help, invoke_without_command=True
        )
        app.add_typer(_add(group, commands), name=name)
    return app


def _show_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def _add(app: typer.Typer, commands: Sequence[Callable[..., None]]) -> typer.Typer:
    for command in commands:
        app.command(cls=_Command)(_with_notes(command))
    return app


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal cannot show must not end a fit that has been paid for.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    output = cast(TextIO, Pipe(sys.stdout))
    main_thread = threading.current_thread() is threading.main_thread()
    on_interrupt = signal.getsignal(signal.SIGINT) if main_thread else None
    command = _command(sys.argv[1:] if arguments is None else arguments)
    with warnings.catch_warnings(), contextlib.redirect_stdout(output):
        warnings.showwarning = _show_warning
        try:
            code = build()(
                args=None if arguments is None else list(arguments),
                prog_name="privasso",
                standalone_mode=False,  # errors come here instead of being printed in a box
            )
            if code == EXIT_INTERRUPTED:  # Typer saw Ctrl-C, before or after the command itself
                return _interrupted(KeyboardInterrupt())
            sys.stdout.flush()
        except OSError as error:
            named = error.filename is not None
            said = f"{escaped(error.filename)}: {error.strerror}" if named else error
            return _complain(said, command, error)
        except ValueError as error:
            given = sys.argv[1:] if arguments is None else arguments
            return _complain(_with_options(str(error), given), command, error)
        except MemoryError as error:
            return _complain("this needs more memory than there is", command, error)
        except OverflowError as error:
            return _complain("a number is too large or too small to compute with", command, error)
        except (KeyboardInterrupt, _Interrupted) as error:
            return _interrupted(error)
        except Exception as error:
            if type(error).__name__ == "Abort":  # what older versions of Typer make of Ctrl-C
                return _interrupted(error)
            if isinstance(error, ImportError) and _after_interrupt(error):
                return _interrupted(KeyboardInterrupt())
            if _is_usage_error(error) or _is_solve_error(error):
                return _complain(_usage(error), command, error)
            raise
        finally:
            with contextlib.suppress(OSError):
                sys.stdout.flush()  # while a reader that has gone away is no error
            if on_interrupt is not None:  # a fit may have left it off
                signal.signal(signal.SIGINT, on_interrupt)
    return code if isinstance(code, int) else 0


def _open_streams() -> None:
    """Let streams that are closed, as by ``>&-`` in a shell, go nowhere.

    Otherwise the next file that is opened would take their place, and what is printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _after_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C led to this error: a module in C++ may make an ImportError of it.

    >>> try:
    ...     raise ImportError from KeyboardInterrupt()
    ... except ImportError as error:
    ...     _after_interrupt(error)
    True
    """
    if error is None or isinstance(error, KeyboardInterrupt):
        return error is not None
    return _after_interrupt(error.__cause__ or error.__context__)


def _is_usage_error(error: Exception) -> bool:
    # The base class has moved between versions of Typer; the names of its methods have not.
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def _is_solve_error(error: Exception) -> bool:
    from privasso.blocks import DataChangedError, WorkersLostError
    from privasso.fit import AfterReleaseError
    from privasso.queries import UncertifiedError
    from privasso.solvers import SolveError

    kinds = SolveError, AfterReleaseError, UncertifiedError, DataChangedError, WorkersLostError
    return isinstance(error, kinds)


def _usage(error: Foreign) -> object:
    """The sentence of an error; of a wrong option, with the command that explains it."""
    if not _is_usage_error(error):
        return error
    context = getattr(error, "ctx", None)
    sentence = error.format_message().rstrip(".")
    if "'--y-bounds'" in sentence:
        sentence = "--y-bounds needs two numbers with a space between them: --y-bounds 60 200"
    wrong = re.fullmatch(
        r"Invalid value for '(--[\w-]+)': .* valid (\w+), unable to parse .*", sentence
    )
    if wrong is not None:
        kind = {"integer": "a whole number", "number": "a number"}.get(wrong[2], f"a {wrong[2]}")
        sentence = f"{wrong[1]} needs {kind}"
    if context is None:
        return sentence
    link = " See" if sentence.endswith("?") else "; see"
    return f"{sentence}{link} {context.command_path} --help"


def _command(arguments: Sequence[str]) -> str:
    """The command that was asked for, as far as it is known.

    >>> _command(["fit", "data.csv"]), _command(["fitt"]), _command([])
    ('privasso fit', 'privasso', 'privasso')
    """
    known = {command.__name__ for command in COMMANDS} | GROUPS.keys()
    return "privasso" + (f" {arguments[0]}" if arguments and arguments[0] in known else "")


def _with_options(sentence: str, arguments: Sequence[str]) -> str:
    """The sentence with the option that was typed in place of the argument of a function.

    >>> _with_options("y_bounds must increase, not (9.0, 1.0)", ["fit", "--y-bounds", "9", "1"])
    '--y-bounds must increase, not (9.0, 1.0)'
    >>> _with_options("y_bounds[0] must be finite, not nan", ["fit", "--y-bounds", "nan", "1"])
    '--y-bounds must be finite, not nan'
    >>> _with_options("r2 must be below 1, not 2.0", ["fit", "--assume-r2", "2"])
    '--assume-r2 must be below 1, not 2.0'
    """
    typed = {word.partition("=")[0] for word in arguments if word.startswith("--")}
    first, _, rest = sentence.partition(" ")
    name = first.partition("[")[0].replace("_", "-")
    if name == "rng":
        name, rest = "seed", rest.replace("None, ", "").replace(" or a numpy.random.Generator", "")
    for option in (f"--{name}", f"--assume-{name}"):
        if option in typed:
            return f"{option} {rest}"
    return sentence


def _complain(what: object, command: str, error: BaseException) -> int:
    """Print one sentence, which ends with a command to try next, and what the error notes."""
    sentence, notes = escaped(" ".join(str(what).split())), _notes(error)
    if notes:
        sentence = f"{sentence.rstrip('.')}. {notes}"
    elif "privasso " not in sentence:
        link = " See" if sentence.endswith("?") else "; see"
        sentence = f"{sentence.rstrip('.')}{link} {command} --help"
    print(f"privasso: error: {sentence}", file=sys.stderr)
    return EXIT_BAD_INPUT


class _Interrupted(BaseException):
    """Ctrl-C, under a name that Typer does not know: it would drop the notes."""


def _with_notes(command: Callable[..., None]) -> Callable[..., None]:
    """The same command with --quiet, which keeps the notes of a `KeyboardInterrupt`.

    A parameter that is a dataclass stands for its fields, which have annotations of their own, or
    for those of them that its annotation names.
    """
    kind, parameters, groups = inspect.Parameter.KEYWORD_ONLY, [], {}
    for each in parameters_of(command):
        group, *some = get_args(each.annotation) or [each.annotation]
        if dataclasses.is_dataclass(group):
            own = parameters_of(group, *some)
            groups[each.name] = group, [one.name for one in own]
            parameters += own
        else:
            parameters.append(each)
    parameters.append(inspect.Parameter("quiet", kind, default=False, annotation=Quiet))

    def run(**given: object) -> None:
        quiet = bool(given.pop("quiet", False))
        for name, (group, fields) in groups.items():
            given[name] = group(**{each: given.pop(each) for each in fields})
        try:
            with silence() if quiet and not given.get("as_json") else contextlib.nullcontext():
                command(**given)
        except KeyboardInterrupt as error:
            stopped = _Interrupted()
            for note in getattr(error, "__notes__", ()):
                stopped.add_note(note)
            raise stopped from error

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def _interrupted(error: BaseException) -> int:
    """Say that Ctrl-C ended the run, and what the run has noted about what it kept."""
    print(f"privasso: interrupted. {_notes(error)}".rstrip(), file=sys.stderr)
    return EXIT_INTERRUPTED


def _notes(error: BaseException) -> str:
    """What an error notes, such as what was spent and where it is kept."""
    return escaped(" ".join(" ".join(getattr(error, "__notes__", ())).split()))


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"privasso: warning: {escaped(message)}", file=sys.stderr)
