"""The command line; each command is one file that calls the library."""

import _thread
import sys
import time
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code.

    It is 2 for bad input, with one sentence on stderr, 130 after Ctrl-C, with a sentence on what
    was kept, and 70 after a mistake in privasso itself, which is shown. A reader that closes the
    pipe, as `head` does, ends the output and not the work.
    """
    usual = sys.unraisablehook

    def again(ignored: "sys.UnraisableHookArgs") -> None:
        """Repeat a Ctrl-C that came where Python prints and forgets it, as while it imports."""
        if ignored.exc_type is KeyboardInterrupt:
            _thread.start_new_thread(_interrupt, ())
        else:
            usual(ignored)

    sys.unraisablehook = again
    try:
        # Here, because Ctrl-C may come while it takes its time.
        from privasso.cli._app import run

        return run(arguments)
    except KeyboardInterrupt:
        print("privasso: interrupted.", file=sys.stderr)
        return 130
    except Exception:
        if arguments is not None:  # called by a program
            raise
        # Not 1, the exit code of Python, which says that an audit refutes a claim.
        import traceback

        traceback.print_exc()
        return 70
    finally:
        sys.unraisablehook = usual


def _interrupt() -> None:
    time.sleep(0.01)
    _thread.interrupt_main()
