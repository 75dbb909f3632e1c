"""`privasso ledger`: a privacy budget that several fits share, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privasso.cli._options import AsJson, argument, named, option, tell

if TYPE_CHECKING:
    from privasso.ledger import Ledger
    from privasso.privacy import Guarantee

#: Bytes beyond which a plan is refused unread.
_MOST_BYTES = 64 * 1024 * 1024


def create(
    path: Path = argument("File of the new ledger, JSON."),
    epsilon: float = option("ε of all fits together.", ...),
    delta: float = option("δ of all fits together.", ...),
    data: str = option("What the budget is for, in words.", ""),
    as_json: AsJson = False,
) -> None:
    """Make a ledger with a budget; a file that exists is not overwritten.

    Example: `privasso ledger create budget.json --epsilon 3 --delta 1e-6 --data "blood pressure"`
    """
    from privasso.ledger import Ledger

    made = Ledger.create(path, epsilon, delta, data)
    record = {"path": str(path), "epsilon": epsilon, "delta": delta}
    tell(record if as_json else str(made))


def show(path: Path = argument("File of the ledger."), as_json: AsJson = False) -> None:
    """Show what was charged to a ledger, what that is together, and what is left.

    Example: `privasso ledger show budget.json`
    """
    found = opened(path)
    tell(_record(found) if as_json else str(found))


def reserve(
    path: Path = argument("File of the ledger."),
    plans: list[Path] = argument("What `privasso fit … --dry-run --json` printed, in files."),
    as_json: AsJson = False,
) -> None:
    """Declare fits before the first of them is made, which makes their total smaller.

    Later fits with the same settings use the reservation and cost nothing more; what is not used
    stays spent.

    Example: `privasso ledger reserve budget.json first.json second.json`
    """
    found = opened(path)
    found.reserve([_planned(plan) for plan in plans])
    tell(_record(found) if as_json else str(found))


#: The commands of `privasso ledger`.
COMMANDS = [create, show, reserve]


def _planned(path: Path) -> Guarantee:
    """Read the guarantee that a dry run printed."""
    from privasso._documents import DocumentError, read_json
    from privasso.privacy import Guarantee

    with named(path):
        document = read_json(path, most_bytes=_MOST_BYTES)
        if not isinstance(document, dict) or "guarantee" not in document:
            raise DocumentError("there is no guarantee in it; print one with `privasso fit … "
                                "--dry-run --json`")  # fmt: skip
        return Guarantee.from_dict(document["guarantee"])


def opened(path: Path) -> Ledger:
    """Open the ledger of a file; whatever is wrong with it is told with its name."""
    from privasso.ledger import Ledger

    with named(path):
        return Ledger.open(path)


def remainder(found: Ledger, guarantee: Guarantee) -> dict[str, object]:
    """Return what was spent and what would be left after one more fit; refuse one too many."""
    book, after = found.book, found.after(guarantee)
    return {
        "spent": book.spent(),
        "spent_after": after.spent(),
        "left_after": after.left(),
        "delta": book.delta,
    }


def _record(found: Ledger) -> dict[str, object]:
    book = found.book
    return {
        "data": book.data,
        "epsilon": book.epsilon,
        "delta": book.delta,
        "spent": book.spent(),
        "left": book.left(),
        "entries": [entry.to_dict() for entry in book.entries],
        "last_hash": book.hashes()[-1],
    }
