"""Standard output that may lose its reader, as in `privasso fit … | head -1`, or have no room."""

from __future__ import annotations

import os
from typing import Any, TextIO


class Pipe:
    """A text stream whose reader may go away: the rest of the output is dropped, the work goes on.

    Any other failure is an error, after which the rest is dropped too.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text, or drop it when nobody reads."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._drop()
            if not isinstance(error, BrokenPipeError):
                raise
            return len(text)

    def flush(self) -> None:
        """Pass on what was written, or drop it when nobody reads."""
        try:
            self._stream.flush()
        except OSError as error:
            self._drop()
            if not isinstance(error, BrokenPipeError):
                raise

    def _drop(self) -> None:
        # What is still in a buffer, and all that follows, goes where writing always succeeds.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
