"""What the files of models and releases have in common: format, columns and their encoding."""

from __future__ import annotations

from privasso._documents import DocumentError, Fields, json_text
from privasso._types import Passed
from privasso.encoding import Encoding
from privasso.fit import KeptRelease, KeptStatistics, ReleasedModel
from privasso.programs import Intervals

VERSION = 2
#: A larger file is refused without being read.
MAX_BYTES = 256 * 1024 * 1024
#: Most columns a model may have; a file with more is taken for corrupt or hostile.
MAX_FEATURES = 10_000_000


def header(
    form: str, thing: ReleasedModel | KeptRelease | KeptStatistics, n_features: int
) -> dict[str, object]:
    """The first fields of a file."""
    names = thing.feature_names
    return {
        "format": form,
        "version": VERSION,
        "software": thing.software,
        "n_features": n_features,
        "feature_names": None if names is None else list(names),
        **({} if thing.encoding is None else {"encoding": thing.encoding.to_dict()}),
    }


def opened(document: object, what: str, form: str) -> tuple[Fields, int, dict[str, Passed]]:
    """The fields of a file that are left, the number of columns, and what is known of them."""
    fields = Fields.of_file(document, what, form, VERSION)
    n, names, encoding = fields.whole("n_features", 1, MAX_FEATURES), None, None
    if not fields.is_null("feature_names"):
        names = tuple(fields.texts("feature_names", n, distinct=True))
    if "encoding" in fields.names():
        encoding = Encoding.from_dict(fields.take("encoding"))
        if encoding.names != names:
            raise DocumentError("the encoding does not give the columns of feature_names")
    known: dict[str, Passed] = {"feature_names": names, "encoding": encoding}
    if "intervals" in fields.names():
        known["intervals"] = Intervals.from_dict(fields.take("intervals"), n)
    return fields, n, {**known, "software": fields.text("software")}


def written_intervals(intervals: Intervals | None) -> dict[str, object]:
    """The field of a fit that was asked for intervals."""
    return {} if intervals is None else {"intervals": intervals.to_dict()}


def bounded_text(document: dict[str, object], more: int = 0) -> str:
    """Return the text of a file that `load` and `load_release` do not refuse for its size.

    They would not refuse one that is `more` bytes longer either.
    """
    text = json_text(document)
    try:
        size = len(text.encode("utf-8")) + more
    except UnicodeEncodeError:
        raise DocumentError("a name holds half a character (a lone surrogate)") from None
    if size > MAX_BYTES:
        raise DocumentError(
            f"the file would have {size} bytes, more than the {MAX_BYTES} that are ever read"
        )
    return text
