"""Files that are written completely or not at all, and stay whose they were."""

import contextlib
import os
import stat
from pathlib import Path

import pytest

from privasso import _files
from privasso._files import check_regular, open_regular, read_bounded, read_lines, write_whole

POSIX = pytest.mark.skipif(os.name == "nt", reason="permissions are those of POSIX")
AS_ROOT = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away"
)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def mask():
    before = os.umask(0o027)
    yield
    os.umask(before)


@POSIX
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o664, 0o644])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, mask, permissions):
    path = tmp_path / "model.json"
    write_whole(path, "first")
    assert mode(path) == 0o640  # those of a new file, less the mask of the process
    path.chmod(permissions)
    write_whole(path, "second")
    assert (mode(path), path.read_text()) == (permissions, "second")
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]


@POSIX
def test_what_is_not_public_is_not_so_for_a_moment(tmp_path, mask, monkeypatch):
    path, seen = tmp_path / "budget.json", []
    path.write_text("first")
    path.chmod(0o600)
    real = os.fsync

    def watched(handle):
        seen.extend(mode(file) for file in tmp_path.glob(".budget.json.*"))
        real(handle)

    monkeypatch.setattr(os, "fsync", watched)
    write_whole(path, "second")
    assert seen[0] == 0o600


def test_the_mask_of_the_process_is_left_alone(tmp_path, monkeypatch):
    """It can only be read by setting it, and files of other threads slip through meanwhile."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the mask was changed"))
    write_whole(tmp_path / "model.json", "content")


@AS_ROOT
def test_the_owner_stays(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("first")
    path.chmod(0o640)
    os.chown(path, 12345, 23456)
    write_whole(path, "second")
    found = path.stat()
    assert (found.st_uid, found.st_gid, mode(path)) == (12345, 23456, 0o640)


def as_somebody(uid, action):
    """What an action raises when it is done by another user, as a name."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        try:
            action()
            os.write(writing, b"nothing")
        except BaseException as error:
            os.write(writing, type(error).__name__.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        found = answer.read()
    os.waitpid(child, 0)
    return found


@AS_ROOT
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_what_may_not_be_written_is_not_replaced(tmp_path):
    """A folder that all may write to lets anybody replace a file that only its owner may write."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder == Path("/tmp"):
            break
        folder.chmod(0o777)
    path = tmp_path / "budget.json"
    path.write_text("first")
    path.chmod(0o444)
    found = as_somebody(54321, lambda: write_whole(path, "second"))
    assert (found, path.read_text(), path.stat().st_uid) == ("PermissionError", "first", 0)
    # What all may write stays readable for the same people, whoever writes it.
    path.chmod(0o666)
    assert as_somebody(54321, lambda: write_whole(path, "second")) == "nothing"
    assert (path.read_text(), path.stat().st_uid) == ("second", 54321)
    assert mode(path) == 0o606  # the group of the other user is another one


def test_a_name_in_no_folder_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_whole(tmp_path / "nowhere" / "model.json", "content")


def test_nothing_is_left_of_what_failed(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    write_whole(path, "first")

    def full(handle):
        raise OSError("disk full")

    monkeypatch.setattr(_files.os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, "second")
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]
    assert path.read_text() == "first"


def test_ctrl_c_while_a_file_is_opened_stays_ctrl_c(tmp_path, monkeypatch):
    """It must not become an error about a handle that is closed already."""
    (tmp_path / "some.txt").write_text("some")
    true = os.fdopen

    def interrupted(*arguments, **options):
        true(*arguments, **options).close()
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fdopen", interrupted)
    with contextlib.suppress(KeyboardInterrupt):
        open_regular(tmp_path / "some.txt").close()


def test_files_are_read_as_bytes_and_only_if_they_are_small_files(tmp_path):
    file = tmp_path / "some.txt"
    file.write_bytes(b"a\x0bb\r\n\n \xff")
    assert read_lines(file) == [b"a\x0bb\r", b" \xff"]
    assert read_bounded(file, 8) == file.read_bytes()
    with pytest.raises(ValueError, match="larger than 7 bytes"):
        read_bounded(file, 7)
    with pytest.raises(ValueError, match="is a folder, not a file"):
        check_regular(tmp_path)
