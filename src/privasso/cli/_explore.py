"""`privasso explore`: a page in the browser that shows what noise costs and buys, live."""

from __future__ import annotations

import contextlib
import json
import tempfile
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from privasso._text import escaped
from privasso.cli._fit import FitSettings
from privasso.cli._options import AsJson, Force, argument, check_ending, option, tell


def explore(
    columns: Annotated[FitSettings, "target exclude keep row_names"],
    data: Path | None = argument(
        "A table whose scales are explored; only this machine sees them.", None
    ),
    port: int = option("Port on this machine; 0 takes a free one.", 0),
    no_browser: bool = option("Print the address and open nothing.", False),
    out: Path | None = option("Write a page that works without privasso (.html), and end."),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Open a page with sliders: error, sparsity, stability, leakage and attack at once.

    The page is served to this machine alone, loads nothing from elsewhere and works offline. Ctrl-C
    ends it. With a table the scales, the correlations and the number of rows per column are those
    of its columns of numbers, in units of their root mean square.

    Example: `privasso explore patients.csv --target pressure`

    A page to send to others: `privasso explore --out explorer.html`
    """
    from privasso.cli._progress import working

    if not 0 <= port <= 65535:
        raise ValueError("--port must be a number from 0 to 65535")
    if out is not None:
        if data is not None:
            raise ValueError("--out writes a page without a table; leave the table out")
        _write(out, as_json, force)
        return
    from privasso.cli._fit_read import names_in
    from privasso.explore import Explorer, Settings, answer, settings_of
    from privasso.tables import open_table

    with working("reading the table", quiet=as_json):
        settings = Settings()
        if data is not None:
            table = open_table(data, row_names=columns.row_names)
            given = columns.exclude, columns.keep
            left_out, kept = (names_in(names, table.names) for names in given)
            settings = settings_of(table, columns.target, left_out, kept or ())
    with working("preparing the first view", quiet=as_json):
        for what in ("everything", "attack", "fits", "correlated"):
            answer(what, settings)  # kernels are compiled now, not at the first move of a slider
    with Explorer(settings, port) as server:
        if as_json:
            print(json.dumps({"url": server.url}), flush=True)
        else:
            print(f"{server.url}\nThe page is for this machine alone. Ctrl-C ends it.", flush=True)
        with contextlib.nullcontext() if no_browser else _opened(server.url):
            server.serve_forever()


@contextlib.contextmanager
def _opened(url: str) -> Iterator[None]:
    """Show the address in a browser, by a file that only this user can read.

    The command line of a browser, which all users of the machine can see, must not hold it.
    """
    with tempfile.TemporaryDirectory(prefix="privasso-") as folder:
        file = Path(folder, "explore.html")
        file.touch(0o600)
        file.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={url}">')
        webbrowser.open(file.as_uri())
        yield


def _write(out: Path, as_json: bool, force: bool) -> None:
    from privasso.cli._outputs import EXPLORER, Outputs
    from privasso.cli._progress import working
    from privasso.explore import static_page

    check_ending("--out", out, ".html")
    with Outputs(force=force) as outputs:
        outputs.claim("--out", out, EXPLORER)
        with working("predicting at every position of the sliders", quiet=as_json):
            text = static_page()
        outputs.write({"--out": text})
    tell({"out": str(out)} if as_json else f"wrote {escaped(out)}; open it anywhere")
