"""The command line; each command is one file that calls the library."""

from privasso.cli._app import main

__all__ = ["main"]
