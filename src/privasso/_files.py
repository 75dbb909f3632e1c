"""Reading regular files only, with a bound; writing a file completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from io import BufferedReader
from pathlib import Path

from privasso._text import escaped

#: Of the kinds of things that have a name in a folder, those that are not regular files.
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse what is not a regular file: a pipe may never answer, a device may never end.

    A name that does not exist is an ``OSError``, as everywhere.
    """
    _check_mode(path, Path(path).stat().st_mode)


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a regular file for reading; anything else is refused, and nothing is waited for."""
    check_regular(path)  # before opening, which has effects on some devices
    # The file owns its handle from the start, so that Ctrl-C cannot have it closed twice.
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115
    try:
        _check_mode(path, os.fstat(file.fileno()).st_mode)  # the name may have changed hands since
    except BaseException:
        file.close()
        raise
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse to replace a file that may not be written to, which the folder alone would allow."""
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))


def read_bounded(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Read a regular file of at most that many bytes."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise ValueError(
                f"the file is larger than {most_bytes} bytes, too large for what it should be"
            )
        return file.read(size)  # no more than there is: room is made for all that is asked for


def read_lines(path: str | os.PathLike[str]) -> list[bytes]:
    """The lines of a regular file that are not blank; nothing but a line feed ends one."""
    with open_regular(path) as file:
        if not fits_memory(os.fstat(file.fileno()).st_size):
            raise ValueError(f"{escaped(path)} is larger than the memory of this machine")
        return [line for line in file.read().split(b"\n") if line.strip()]


def unreadable(path: str | os.PathLike[str]) -> ValueError:
    """The error for a file that is not what its ending says."""
    kind = Path(path).name.lower().removesuffix(".gz").rpartition(".")[2]
    return ValueError(
        f"{escaped(path)} cannot be read as {kind}: the file is damaged, of another kind, or too "
        "large for this machine"
    )


def fits_memory(size: int) -> bool:
    """Whether the machine has so many bytes of memory at all, used or not."""
    try:
        return size <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # a system that does not tell
        return size <= 1 << 50


def write_whole(
    path: str | os.PathLike[str], content: str | bytes, *, replace: bool = True
) -> None:
    """Write a file so that a reader finds the old content or the new, never a part.

    The content goes to another name in the same folder, is flushed to the disk, and renamed; the
    folder is flushed too, so that the new content survives a power failure from then on. Text is
    written as UTF-8. Without `replace` a file that exists is a ``FileExistsError`` and stays as it
    is. A file that is replaced keeps its permissions, its group and, where the system allows it,
    its owner; one that may not be written to is a ``PermissionError``.
    """
    target = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    former = None
    if replace and target.exists():
        check_writable(target)
        former = target.stat()
    name = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        # The system takes the mask of the process off the permissions of a new file.
        handle = os.open(name, _NEW, 0o666 if former is None else 0o600)
    except OSError as error:  # name the file that was asked for
        raise type(error)(error.errno, error.strerror, str(target)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            if former is not None:
                _make_like(file.fileno(), former)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(name, target)
        else:
            _give_free_name(name, target)
        _flush_folder(target.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            name.unlink()
        raise


#: A file that nobody else has made, under no other name.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def _make_like(handle: int, former: os.stat_result) -> None:
    """Give a new file the owner, the group and then the permissions of another."""
    if os.name == "nt":
        return
    for ids in ((former.st_uid, former.st_gid), (-1, former.st_gid)):
        try:
            os.fchown(handle, *ids)
        except PermissionError:
            continue
        break
    mode = stat.S_IMODE(former.st_mode)
    if os.fstat(handle).st_gid != former.st_gid:
        mode &= ~0o070  # what a group was allowed is not for another group
    os.fchmod(handle, mode)


def _flush_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # Windows opens no folders
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:  # some network file systems cannot
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _give_free_name(name: Path, target: Path) -> None:
    """Rename a file; fail if the new name is taken."""
    try:
        os.link(name, target)  # unlike a renaming, it never replaces
    except OSError:
        if target.exists():
            message = "the file exists already"
            raise FileExistsError(errno.EEXIST, message, str(target)) from None
        os.replace(name, target)  # a file system without links
    else:
        name.unlink()


def _check_mode(path: str | os.PathLike[str], mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise ValueError(f"{escaped(path)} is {kind}, not a file")
