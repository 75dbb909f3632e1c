"""The command line: thin doors to the library, one command a file."""

from privasso.cli._app import main

__all__ = ["main"]
