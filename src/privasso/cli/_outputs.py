"""Files that a command writes together: all of them or none."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from privasso._files import write_whole


class Outputs:
    """The files that a command will write, checked before the work begins.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outputs = Outputs()
    ...     outputs.claim("--out", Path(folder, "model.json"))
    ...     outputs.write({"--out": "content"})
    ...     Path(folder, "model.json").read_text()
    'content'
    """

    def __init__(self) -> None:
        self.paths: dict[str, Path] = {}

    def claim(self, option: str, path: Path | None, *, inputs: tuple[Path, ...] = ()) -> None:
        """Refuse a path that cannot be written, is an input, or is that of another output."""
        if path is None:
            return
        if path.is_dir():
            raise ValueError(f"{option} {path} is a folder; name a file in it")
        for other, taken in [*self.paths.items(), *(("the input", file) for file in inputs)]:
            if path.resolve() == taken.resolve():
                raise ValueError(f"{option} and {other} are the same file, {path}")
        try:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        except OSError as error:
            raise ValueError(f"{option} {path} cannot be written: {error.strerror}") from None
        os.close(handle)
        Path(name).unlink()
        self.paths[option] = path

    def write(self, contents: Mapping[str, str | bytes]) -> None:
        """Write the files in the order given; if one fails, leave none of the new ones.

        The last file is written only after all others.
        """
        before: dict[Path, bytes | None] = {}
        try:
            for option, content in contents.items():
                path = self.paths[option]
                before[path] = path.read_bytes() if path.exists() else None
                write_whole(path, content)
        except BaseException:
            for path, content in before.items():
                with contextlib.suppress(OSError):
                    if content is None:
                        path.unlink(missing_ok=True)
                    else:
                        write_whole(path, content)
            raise
