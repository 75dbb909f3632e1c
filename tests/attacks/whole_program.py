"""The whole path of a program: files in, files out, against a neighbouring file."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from black_boxes import black_box
from privasso._files import check_regular
from privasso._validation import integer
from privasso.artefact import load
from privasso.attacks import Audit
from privasso.privacy import Guarantee

FloatArray = NDArray[np.float64]

#: Digits of a number that are looked for in what a program writes.
_DIGITS = 9
#: Numbers with fewer digits occur by chance.
_LEAST_DIGITS = 7


@dataclass(frozen=True)
class Attacked:
    """What is found: the audit, and private numbers that are written digit by digit."""

    audit: Audit
    leaks: set[float]

    @property
    def passed(self) -> bool:
        return self.audit.passed is True and not self.leaks


def audit_command(
    command: str | Sequence[str],
    data: Path | str,
    neighbour: Path | str,
    *,
    guarantee: Guarantee | None = None,
    secrets: FloatArray | None = None,
    releases: SupportsIndex = 200,
    level: float = 0.01,
    fork: bool | None = None,
) -> Attacked:
    """Attack a program that reads a file and writes a model, by what it writes.

    It is run many times on the file and on a neighbour of it. All numbers in the model file and in
    what it prints are attacked together, and searched for private numbers in plain text. That finds
    mistakes anywhere in the program, not only in its noise.

    Parameters
    ----------
    command : str or sequence of str
        The program with its arguments; ``{data}`` and ``{out}`` stand for the files to read and to
        write, as in ``"privasso fit {data} --out {out} --target y …"``.
    data, neighbour : path
        Two files that are neighbours under the guarantee: they differ in one label, or in one
        record.
    guarantee : Guarantee, optional
        What is claimed; by default what the first model file states.
    secrets : array_like, optional
        Private numbers to look for in what is written; those with seven digits or more count. By
        default those that are in one of the two files only.
    releases : int
        Runs on each file; half of them are for learning. Noise that is too small shows in fewest
        runs at an ε of 2 or 3, a number without noise at 1 or less.
    level : float
        Probability with which a correct program is said to break its claim, at most.
    fork : bool, optional
        Import the program once and fork for each run, which is several times faster. It is done by
        default for ``privasso`` itself, where the system can fork. It needs a program that takes
        all its randomness from the operating system, and ``python -m MODULE`` or ``privasso``.
    """
    words = shlex.split(command) if isinstance(command, str) else list(command)
    count = integer("releases", releases, minimum=20)
    for needed in ("{data}", "{out}"):
        if not any(needed in word for word in words):
            raise ValueError(f"command must hold {needed}, where the file goes")
    files = Path(data), Path(neighbour)
    for file in files:
        check_regular(file)
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    if texts[0] == texts[1]:
        raise ValueError("the two files are the same, so there is nothing to tell apart")
    private = _differing(*texts) if secrets is None else np.asarray(secrets, dtype=np.float64)
    private = np.array([x for x in private.ravel().tolist() if _digits(x) >= _LEAST_DIGITS])
    found: dict[int, list[dict[str, float]]] = {0: [], 1: []}
    leaked: set[float] = set()
    with tempfile.TemporaryDirectory() as folder, _program(words, fork) as run:
        # The two files are read in turn, so that a clock or a counter does not tell them apart.
        for done in range(2 * count):
            world = 1 - done % 2
            # The name of the file must not tell the worlds apart.
            read, out = (Path(folder) / name for name in (f"data{files[0].suffix}", "model.json"))
            shutil.copyfile(files[1 - world], read)
            written = run(words, read, out)
            if guarantee is None:
                guarantee = load(out).guarantee
            leaked.update(traces(written, private))
            found[world].append(
                {
                    f"{k}:{place}": number
                    for k, text in enumerate(written)
                    for place, number in numbers_in(text).items()
                }
            )
            out.unlink()
    assert guarantee is not None
    # Which numbers there are is learned from the first half too.
    half = count // 2
    places = sorted({place for world in found.values() for one in world[:half] for place in one})
    runs = {
        world: iter([np.array([one.get(place, 0.0) for place in places]) for one in lines])
        for world, lines in found.items()
    }
    rows = max(len(text.splitlines()) for text in texts) - 1
    columns = len(texts[0].splitlines()[0].split(",")) - 1
    result = black_box(
        lambda world: next(runs[world]),
        guarantee,
        releases=count,
        level=level,
        name="the record in which the files differ",
        shape=(rows, columns),
    )
    return Attacked(result, leaked)


def traces(written: Iterable[str], secrets: FloatArray) -> list[float]:
    """Return the secret numbers whose leading digits stand in any of the texts.

    Use secrets with many digits, such as labels drawn at random: numbers like 0.5 occur by chance.
    """
    found = set()
    for text in written:
        for number in re.findall(r"\d+\.?\d*(?:[eE][-+]?\d+)?", text):
            found.add(_leading(float(number)))
    return [float(x) for x in np.asarray(secrets).ravel() if _leading(abs(float(x))) in found]


def _leading(number: float) -> str:
    return f"{number:.{_DIGITS - 1}e}"


@contextlib.contextmanager
def _program(
    words: Sequence[str], fork: bool | None
) -> Iterator[Callable[[Sequence[str], Path, Path], list[str]]]:
    """A function that runs the command on files and returns the texts that it has written."""
    module, first = ("privasso", 1) if words[0] == "privasso" else (None, 3)
    if module is None and words[1:2] == ["-m"] and Path(words[0]).name.startswith("python"):
        module = words[2]
    if fork is None:
        fork = words[0] == "privasso" and hasattr(os, "fork")
    if fork and module is None:
        raise ValueError("fork needs a command that starts with privasso or python -m MODULE")

    def run(words: Sequence[str], data: Path, out: Path) -> list[str]:
        filled = [word.replace("{data}", str(data)).replace("{out}", str(out)) for word in words]
        if server is not None:
            code, printed = _ask(server, filled[first:], out)
        else:
            if filled[0] == "privasso":
                filled[:1] = [sys.executable, "-m", "privasso"]
            done = subprocess.run(filled, capture_output=True, text=True, check=False)
            code, printed = done.returncode, [done.stdout, done.stderr]
        if code != 0 or not out.exists():
            wrote = "" if out.exists() else " and wrote no file"
            raise RuntimeError(
                f"the program ended with exit code {code}{wrote}; run it by hand to see why, "
                "because what it prints may quote the data"
            )
        return [out.read_text(encoding="utf-8"), *printed]

    server = _server(str(module)) if fork else None
    try:
        yield run
    finally:
        if server is not None:
            server.communicate()  # without a further request it ends


def _server(module: str) -> subprocess.Popen[str]:
    """A process that imports the module once, and forks for each run of it."""
    program = [sys.executable, str(Path(__file__).with_name("forked.py")), module]
    # Threads do not survive a fork.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(program, stdin=pipe, stdout=pipe, text=True, env=environment)


def _ask(
    server: subprocess.Popen[str], arguments: Sequence[str], out: Path
) -> tuple[int, list[str]]:
    """Run the module once; its exit code, and what it prints."""
    assert server.stdin is not None
    assert server.stdout is not None
    streams = [out.with_suffix(ending) for ending in (".stdout", ".stderr")]
    server.stdin.write(json.dumps([*map(str, streams), *arguments]) + "\n")
    server.stdin.flush()
    answer = server.stdout.readline()
    if not answer:
        raise RuntimeError("the server that starts the program has ended")
    return int(answer), [stream.read_text(encoding="utf-8") for stream in streams]


def _differing(one: str, two: str) -> FloatArray:
    """Numbers in the lines that stand in one of the files only."""
    first, second = (set(text.splitlines()) for text in (one, two))
    shared = {x for line in first & second for x in numbers_in(line).values()}
    values = (x for line in first ^ second for x in numbers_in(line).values())
    return np.array([x for x in values if x not in shared])


def _digits(number: float) -> int:
    """Significant digits of a number as it is written.

    >>> _digits(0.25), _digits(0.731058578)
    (2, 9)
    """
    mantissa = repr(abs(number)).split("e")[0].replace(".", "").strip("0")
    return len(mantissa)


_NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")


def numbers_in(text: str) -> dict[str, float]:
    """Every number of a JSON document by its path, also those inside of strings.

    Entries of a sparse vector {"index": …, "value": …} are found by their index. Other text counts
    as one string.
    """
    try:
        document = json.loads(text)
    except ValueError:
        document = text
    found: dict[str, float] = {}
    _collect(document, "", found)
    return found


def _collect(value: object, path: str, found: dict[str, float]) -> None:
    if isinstance(value, bool | int | float):
        found[path.lstrip("/")] = _finite(value)
    elif isinstance(value, str):
        for k, number in enumerate(_NUMBER.findall(value)):
            found[f"{path}/{k}".lstrip("/")] = _finite(number)
    elif isinstance(value, list):
        for k, one in enumerate(value):
            _collect(one, f"{path}/{k}", found)
    elif isinstance(value, dict):
        if set(value) == {"index", "value"}:
            value = dict(zip(value["index"], value["value"], strict=True))
        for name, one in value.items():
            _collect(one, f"{path}/{name}", found)


def _finite(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return 1e300
