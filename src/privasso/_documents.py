"""JSON files of finite numbers: how they are written, and read with every field checked."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from privasso._files import read_bounded
from privasso._text import is_unicode
from privasso._validation import real_float

#: The formats of files, and what each is called in messages, with the command that reads it.
KINDS = {
    "privasso-model": "a model; `privasso predict` reads it",
    "privasso-kept-release": "a kept release; `privasso fit --from-release` makes a model of it",
    "privasso-kept-statistics": "a kept release; `privasso fit --from-release` makes a model of it",
    "privasso-design": "a noise design; `privasso fit --design` reads it",
    "privasso-ledger": "a ledger; `privasso fit --ledger` reads it",
}


#: Largest number of a release in size: its square is still far from the end of double precision.
_LARGEST = 1e150


class DocumentError(ValueError):
    """A file, or a part of one, does not have the format that this version of privasso reads.

    Examples
    --------
    >>> import privasso as pv
    >>> try:
    ...     pv.load(__file__)
    ... except DocumentError as error:
    ...     print(error)
    the file is not valid JSON in UTF-8
    """


def check_moderate(**numbers: float | np.ndarray | None) -> None:
    """Refuse numbers whose squares double precision cannot hold, which no release has."""
    for name, value in numbers.items():
        if value is not None and np.max(np.abs(value), initial=0.0) > _LARGEST:
            raise DocumentError(f"{name} holds a number beyond ±{_LARGEST:g}, which no release has")


def json_text(document: Mapping[str, object]) -> str:
    """One JSON object as text, finite numbers only."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_json(path: str | os.PathLike[str], *, most_bytes: int) -> object:
    """Read a JSON file of bounded size without repeated names; its numbers are finite.

    Anything wrong with the content raises `DocumentError` with one sentence.
    """
    try:
        content = read_bounded(path, most_bytes)
    except ValueError as error:
        raise DocumentError(str(error)) from None
    refusals: list[DocumentError] = []

    def refuse(sentence: str) -> DocumentError:
        refusals.append(DocumentError(sentence))
        return refusals[-1]

    def constant(name: str) -> NoReturn:
        raise refuse(f"the file holds {name}, and every number must be finite")

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        result = dict(pairs)
        if len(result) != len(pairs):
            raise refuse("the file has an object with the same name twice")
        return result

    try:
        text = content.decode("utf-8")
        document = json.loads(text, parse_constant=constant, object_pairs_hook=unique)
        # Only an escape such as \ud800 can bring half a character into what was valid UTF-8.
        if "\\ud" in text.lower() and not is_unicode(json.dumps(document, ensure_ascii=False)):
            raise refuse("the file holds a lone surrogate, which is half a character and no text")
        return document
    except (ValueError, RecursionError):
        # Our own sentences say more than the parser's (not JSON or UTF-8, too deep, too long).
        raise (refusals or [DocumentError("the file is not valid JSON in UTF-8")])[0] from None


class Fields:
    """The fields of a JSON object, each taken once and checked for its type.

    `value`: what should be an object. `what`: what the object is called in messages.
    """

    def __init__(self, value: object, what: str) -> None:
        if not isinstance(value, Mapping):
            raise DocumentError(f"{what} must be an object with named fields")
        self.what = what
        self._left: dict[str, object] = dict(value)

    @classmethod
    def of_file(cls, document: object, what: str, form: str, version: int) -> Fields:
        """Open the object of a whole file after checking its format and version.

        A file of another kind is called by its name, with the command that reads it.
        """
        if not isinstance(document, dict):
            raise DocumentError("the file holds no JSON object")
        given = document.get("format")
        if given != form:
            if isinstance(given, str) and given in KINDS:
                raise DocumentError(f"the file is not {what} but {KINDS[given]}")
            raise DocumentError(f"the file is not {what}: format is not {form!r}")
        found = document.get("version")
        if isinstance(found, bool) or found != version:
            raise DocumentError(
                f"the file has version {found!r:.40}, and this software reads version {version}; "
                "use the version of privasso that wrote it"
            )
        fields = cls(document, what)
        for name in ("format", "version"):
            fields.take(name)
        return fields

    def take(self, name: str) -> object:
        """Return the field unchecked."""
        if name not in self._left:
            raise DocumentError(f"{self.what} lacks the field {name!r}")
        return self._left.pop(name)

    def end(self) -> None:
        """Refuse fields that have not been taken."""
        for name in sorted(map(str, self._left)):
            raise DocumentError(f"{self.what} has an unknown field {name!r:.60}")

    def names(self) -> tuple[str, ...]:
        """Names of the fields that are left."""
        return tuple(map(str, self._left))

    def is_null(self, name: str) -> bool:
        """Whether the field is null, in which case it is taken."""
        if name in self._left and self._left[name] is None:
            return self.take(name) is None
        return False

    def inner(self, name: str) -> Fields:
        """Return the fields of the object in this field."""
        return Fields(self.take(name), name)

    def text(self, name: str) -> str:
        """Return a text."""
        return _text(self.take(name), name)

    def flag(self, name: str) -> bool:
        """Return true or false."""
        value = self.take(name)
        if not isinstance(value, bool):
            raise DocumentError(f"{name} must be true or false")
        return value

    def number(self, name: str, *, least: float | None = None, above: float | None = None) -> float:
        """Return a finite number; true and false are refused."""
        number = _number(self.take(name), name)
        if above is not None and not number > above:
            raise DocumentError(f"{name} must be " + ("positive" if not above else f"> {above:g}"))
        if least is not None and not number >= least:
            raise DocumentError(
                f"{name} must be " + ("zero or positive" if not least else f">= {least:g}")
            )
        return number

    def whole(self, name: str, low: int, high: int) -> int:
        """Return an integer from `low` to `high`."""
        value = self.take(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise DocumentError(f"{name} must be an integer from {low} to {high}")
        return value

    def numbers(
        self, name: str, size: int | None = None, *, most: int = 10**7, least: float | None = None
    ) -> np.ndarray:
        """Return a list of finite numbers as a vector, of that size or of 1 to `most` entries."""
        value = self.take(name)
        count = f"{size} numbers" if size is not None else "numbers"
        if not isinstance(value, (list, tuple)) or (size is not None and len(value) != size):
            raise DocumentError(f"{name} must be a list of {count}")
        if size is None and not 1 <= len(value) <= most:
            raise DocumentError(f"{name} must have 1 to {most} entries, not {len(value)}")
        vector = np.array(value if set(map(type, value)) == {float} else [np.nan]) + 0.0
        if not np.isfinite(vector).all():  # find out which, or why
            vector = np.array([_number(x, f"an entry of {name}") for x in value], dtype=np.float64)
        if least is not None and np.min(vector, initial=least) < least:
            at_least = "zero or positive" if least == 0.0 else f"at least {least:g}"
            raise DocumentError(f"the entries of {name} must be {at_least}")
        return vector

    def texts(self, name: str, size: int | None = None, *, distinct: bool = False) -> list[str]:
        """Return a list of texts."""
        value = self.take(name)
        if not isinstance(value, list) or (size is not None and len(value) != size):
            count = "" if size is None else f"{size} "
            raise DocumentError(f"{name} must be a list of {count}texts")
        found = [_text(x, f"an entry of {name}") for x in value]
        if distinct and len(set(found)) != len(found):
            raise DocumentError(f"{name} has a name twice")
        return found


def _number(value: object, name: str) -> float:
    try:
        return real_float(name, value)
    except ValueError as error:
        raise DocumentError(str(error)) from None


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise DocumentError(f"{name} must be text")
    return value
