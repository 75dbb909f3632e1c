"""Files that a command writes together: all of them or none, and no other run at the same time."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from privasso._files import check_regular, check_writable, open_regular, write_whole
from privasso._text import escaped

try:
    import fcntl
except ImportError:  # Windows, where an open file can be made to vanish with its process
    fcntl = None

#: Bytes that are written at a time to try whether there is room.
_PIECE = 1 << 20
#: Bytes at the beginning and at the end of a file that are searched for a mark.
_SEARCHED = 4096


class Kind(NamedTuple):
    """A kind of output: its name, and what a file of that kind by a former run is known by."""

    name: str
    mark: bytes


MODEL = Kind("a model", rb'"format":\s*"privasso-model"')
DESIGN = Kind("a design", rb'"format":\s*"privasso-design"')
AUDIT = Kind("an audit", rb'"format":\s*"privasso-audit"|"generator" content="privasso audit"')
EVALUATION = Kind("an evaluation", rb'"format":\s*"privasso-evaluation"')
REPORT = Kind("a report", rb'"generator" content="privasso report"')
EXPLORER = Kind("a page to explore", rb'"generator" content="privasso explorer"')
PREDICTIONS = Kind("a CSV file of predictions", rb"\A(prediction|probability)\r?\n")
PATH = Kind("a CSV file of a path", rb"\Alam,status,intercept\b")
EXPORT = Kind("an export", rb"\A(-- |# |\x08.\x12\x08)privasso")


def files_read(*names: str | os.PathLike[str] | None) -> tuple[Path, ...]:
    """The files that these names stand for: those of a pattern, and those beside a .bed file.

    A name that is no file, such as that of a law of scales, stands for none.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("study.bed", "study.fam", "other.csv"):
    ...         Path(folder, name).touch()
    ...     sorted(path.name for path in files_read(f"{folder}/*.bed", None, "uniform"))
    ['study.bed', 'study.fam']
    """
    found: list[Path] = []
    for name in (os.fspath(name) for name in names if name is not None):
        for path in map(Path, [name] if os.path.exists(name) else glob.glob(name)):
            found.append(path)
            if path.suffix.lower() == ".bed":
                found += [path.with_suffix(".bim"), path.with_suffix(".fam")]
    return tuple(path for path in found if path.exists())


class Outputs:
    """The files that a command will write, claimed before the work begins.

    A claim is an empty, hidden file ``.NAME.lock`` beside the output that is locked for as long as
    the process lives; a second run that asks for the same output meanwhile is refused, before
    it spends anything. Leaving the ``with`` block removes the claims. After a crash the file may
    stay, but its lock does not, and the next run takes it over.

    A file that the command reads is never written. One that exists is replaced if it is of the kind
    that is written, or with `force`.

    Parameters
    ----------
    reads : tuple of Path
        All files that the command reads; see `files_read`.
    force : bool
        Replace files of any kind.
    """

    def __init__(self, *, reads: tuple[Path, ...] = (), force: bool = False) -> None:
        self.paths: dict[str, Path] = {}
        self._reads, self._force = reads, force
        self._there: set[str] = set()
        self._claims = contextlib.ExitStack()

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, *_: object) -> None:
        self._claims.close()

    def claim(self, option: str, path: Path | None, kind: Kind | None = None) -> None:
        """Refuse a place that cannot be written, is an input, or is taken by another output.

        Without a kind a file that exists is refused, `force` or not.
        """
        if path is None:
            return
        shown, lock = escaped(path), path.parent / f".{path.name}.lock"
        if path.is_dir():
            raise ValueError(f"{option} {shown} is a folder; name a file in it")
        for other, taken in self.paths.items():
            if _same(path, taken):
                raise ValueError(f"{option} and {other} are the same file, {shown}")
        for file in self._reads:
            if _same(path, file) or _same(lock, file):
                raise ValueError(
                    f"{option} and the input are the same file, {escaped(file)}; name another"
                )
        try:
            there = os.path.lexists(path)
            if there and path.exists():
                check_regular(path)
                check_writable(path)
            with _placeholder(path):
                pass
            taken = not self._lock(lock)
        except OSError as error:
            raise ValueError(f"{option} {shown} cannot be written: {error.strerror}") from None
        if taken:
            raise ValueError(f"another run is about to write {option} {shown}; wait for its end")
        if os.path.lexists(path):  # asked while nobody else can write it
            self._check_replaceable(option, path, kind)
            self._there.add(option)
        self.paths[option] = path

    def _check_replaceable(self, option: str, path: Path, kind: Kind | None) -> None:
        if kind is None:
            raise ValueError(
                f"{option} {escaped(path)} exists already, and a release is never overwritten, "
                "because its budget is spent; name another file"
            )
        if not self._force and not is_former(path, kind):
            raise ValueError(
                f"{option} {escaped(path)} exists already and is not {kind.name} that privasso "
                "wrote; name another file, or replace it with --force"
            )

    def write(self, contents: Mapping[str, str | bytes]) -> None:
        """Write the files in the order given; if one fails, leave none of the new ones.

        The last file is written only after all others. A file that was not there when its place
        was claimed is not replaced.
        """
        before: dict[Path, bytes | None] = {}
        try:
            for option, content in contents.items():
                path = self.paths[option]
                if option in self._there and path.exists():
                    before[path] = path.read_bytes()
                    write_whole(path, content)
                else:
                    write_whole(path, content, replace=option in self._there)
                    before[path] = None
        except BaseException:
            for path, content in before.items():
                with contextlib.suppress(OSError):
                    if content is None:
                        path.unlink(missing_ok=True)
                    else:
                        write_whole(path, content)
            raise

    def _lock(self, path: Path) -> bool:
        """Make a file that no other process holds, until the claims end; False if one does."""
        if fcntl is None:
            flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_TEMPORARY", 0)
            try:
                handle = os.open(path, flags)
            except FileExistsError:
                return False
            self._claims.callback(os.close, handle)
            return True
        while True:
            handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return False
            except BaseException:
                os.close(handle)
                raise
            # Between opening and locking, the run before may have removed the name.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), path.stat()):
                    if os.fstat(handle).st_size:
                        os.close(handle)
                        raise ValueError(f"{escaped(path)} is in the way: it is no claim of a run")
                    self._claims.callback(_unlock, path, handle)
                    return True
            os.close(handle)


def _unlock(path: Path, handle: int) -> None:
    with contextlib.suppress(OSError):
        path.unlink()  # while it is still locked, so that nobody else's is removed
    os.close(handle)


def check_room(sizes: Mapping[Path, int]) -> None:
    """Refuse places that have no room for files of so many bytes, all of them at the same time."""
    with contextlib.ExitStack() as stack:
        for path, size in sizes.items():
            try:
                stack.enter_context(_placeholder(path, size))
            except OSError as error:
                raise ValueError(
                    f"{escaped(path)} would have about {size} bytes and cannot be written: "
                    f"{error.strerror}"
                ) from None


def is_former(path: Path, kind: Kind) -> bool:
    """Whether a file is one of that kind that an earlier run wrote."""
    try:
        with open_regular(path) as file:
            content = file.read(_SEARCHED)
            file.seek(max(0, os.fstat(file.fileno()).st_size - _SEARCHED))
            return re.search(kind.mark, content + b"\0" + file.read(_SEARCHED)) is not None
    except (OSError, ValueError):
        return False


def _same(one: Path, two: Path) -> bool:
    """Whether two names stand for the same file, or will when it exists."""
    try:
        return os.path.samefile(one, two)
    except OSError:
        return one.resolve() == two.resolve()


@contextlib.contextmanager
def _placeholder(path: Path, size: int = 0) -> Iterator[None]:
    """A file of that size beside the path, with a name as long as any that writing it needs."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            for start in range(0, size, _PIECE):
                file.write(bytes(min(_PIECE, size - start)))
            file.flush()
            if size:
                os.fsync(file.fileno())
            yield
    finally:
        Path(name).unlink()
