"""The report and the page of an audit in a real browser: accessibility, and one page of paper."""

import re
import shlex

import numpy as np
import polars as pl
import pytest

import privasso as pv
from browser import chromium, serious
from privasso.cli import main


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3)) * [1.0, 10.0, 100.0]
    return X, np.clip(X @ [1.0, 0.1, 0.0], -3.0, 3.0)


@pytest.fixture(scope="module")
def pages(data, tmp_path_factory):
    X, y = data
    folder = tmp_path_factory.mktemp("pages")
    table, report = folder / "data.csv", folder / "report.html"
    pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(y=y).write_csv(table)
    words = shlex.split("--target y --label-dp --epsilon 5 --delta 1e-4 --y-bounds -3 3 --seed 1")
    written = ["--out", str(folder / "model.json"), "--report", str(report)]
    with pytest.MonkeyPatch.context() as patch:  # their numbers are tested in their own rooms
        patch.setattr("privasso.forecast._scheme._MOST", 6)
        patch.setattr("privasso.attacks._audit.CONFIRMING", 2)
        assert main(["fit", str(table), *words, *written]) == 0
        release = pv.LabelDP(5.0, 1e-4, (-3.0, 3.0), mechanism="release")
        found = pv.audit(release, X, y, lam=1.0, releases=20, rng=0)
    assert report.read_text(encoding="utf-8").count("<figure>") == 4
    (folder / "audit.html").write_text(found.text(".html"), encoding="utf-8")
    return folder


def lightness(page) -> float:
    """How light the ground of a page is, from 0 to 1."""
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3]) / (3.0 * 255.0)


WAYS = [(1280, "light"), (400, "dark")]
MORE_WAYS = [(400, "light"), (1280, "dark")]


@pytest.mark.parametrize("ways", [WAYS, pytest.param(MORE_WAYS, marks=pytest.mark.slow)], ids=str)
def test_no_serious_barrier(pages, ways):
    with chromium() as browser:
        for name in ("report.html", "audit.html"):
            for width, scheme in ways:
                context = browser.new_context(
                    bypass_csp=True,
                    viewport={"width": width, "height": 900},
                    color_scheme=scheme,
                )
                page = context.new_page()
                page.goto((pages / name).as_uri())
                assert serious(page) == [], (name, scheme)
                assert (lightness(page) < 0.5) == (scheme == "dark")
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                context.close()
