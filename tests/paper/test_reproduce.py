"""The whole reproduction on a tiny grid: its files, which depend only on the seed."""

import hashlib
import json
import shutil
import subprocess
import sys
from html import escape, unescape
from html.parser import HTMLParser

import polars as pl
import pytest
from matplotlib.text import Text

from privasso.figures import render
from privasso.paper import Settings, _reproduce, reproduce
from privasso.paper._reproduce import CLAIMS, FIGURES

pytestmark = pytest.mark.timeout(300)  # the figures of the whole paper, drawn once
PNG = b"\x89PNG"
#: Figures that are quick to compute and to draw.
FEW = ("leakage", "tail")

# A run that kills itself in the middle of its work.
KILLED = """
import os, signal, sys
from privasso.paper import Settings, reproduce

def stop(done, total, description):
    if done >= total // 2:
        os.kill(os.getpid(), signal.SIGKILL)

reproduce(sys.argv[1], sys.argv[2].split(","), settings=Settings.tiny(), progress=stop)
"""


def tables_of(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "tables").iterdir())}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The whole paper, with every figure; only the search for the best margins is left out.

    So is the text in PDF files, whose fonts take longer than all else in them; two are drawn.
    """
    drawn = []

    def sketched(figure, kind):
        figure.set_layout_engine("none")
        drawn.extend([kind] * (kind == "pdf"))
        if kind == "pdf" and len(drawn) > 2:
            return b"%PDF, not drawn"
        shown = [text for text in figure.findobj(Text) if kind == "pdf" and text.get_visible()]
        for text in shown:
            text.set_visible(False)
        made = render(figure, kind)
        for text in shown:
            text.set_visible(True)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_reproduce, "render", sketched)
        return reproduce(tmp_path_factory.mktemp("whole"), settings=Settings.tiny())


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    folder = tmp_path_factory.mktemp("few")
    with pytest.MonkeyPatch.context() as patch:  # only the tables are asked for
        patch.setattr(_reproduce, "render", lambda *_: b"")
        reproduce(folder, FEW, settings=Settings.tiny())
    return tables_of(folder)


def test_every_figure_has_picture_and_tables(run):
    for name in FIGURES:
        assert (run.folder / "figures" / f"{name}.png").read_bytes().startswith(PNG)
        assert (run.folder / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert any(table.startswith(name) for table in run.tables)


def test_tables_are_the_same_in_both_formats_and_say_their_origin(run):
    for name, table in run.tables.items():
        stem = run.folder / "tables" / name
        parquet = pl.read_parquet(stem.with_suffix(".parquet"))
        assert parquet.equals(table)
        csv = pl.read_csv(stem.with_suffix(".csv"), schema_overrides=table.schema)
        assert csv.equals(table)
        assert "version" in table.columns
        if "samples" in table.columns:
            assert {"seed", "n_features"} <= set(table.columns)
        assert not any("second" in column for column in table.columns)  # timings would differ


def test_manifest_lists_every_file_with_its_hash(run):
    manifest = json.loads((run.folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest == run.manifest
    written = {
        path.relative_to(run.folder).as_posix()
        for path in run.folder.rglob("*")
        if path.is_file() and ".store" not in path.parts
    }
    assert set(manifest["files"]) == written - {"manifest.json"}
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((run.folder / name).read_bytes()).hexdigest() == digest
    assert manifest["settings"]["n_features"] == Settings.tiny().n_features


def test_claims_are_all_there_and_all_decided(run):
    claims = json.loads((run.folder / "claims.json").read_text(encoding="utf-8"))
    assert [claim["key"] for claim in claims] == [claim.key for claim in CLAIMS]
    text = (run.folder / "claims.md").read_text(encoding="utf-8")
    for claim in claims:
        assert claim["verdict"] in {"confirmed", "partly", "undecided", "contradicted"}
        assert claim["measured"] in text
        assert len(claim["measured"].split()) < 80, "numbers belong into tables"


def test_the_numbers_of_every_claim_are_tables_on_both_pages(run):
    text = (run.folder / "claims.md").read_text(encoding="utf-8")
    html = unescape(run.page.read_text(encoding="utf-8"))
    for claim in json.loads((run.folder / "claims.json").read_text(encoding="utf-8")):
        assert claim["tables"], claim["key"]
        for table in claim["tables"]:
            assert f"{table['title']}:" in text
            for row in table["rows"]:
                assert f"| {' | '.join(row.values())} |" in text
                assert all(f">{cell}</td>" in html for cell in row.values())


class Outline(HTMLParser):
    """Images with the length of their data, headings, and addresses outside the page."""

    def __init__(self):
        super().__init__()
        self.images, self.outside = [], []

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        address = named.get("src") or named.get("href") or ""
        if tag == "img":
            self.images.append(len(address))
        if "://" in address or address.startswith("//"):
            self.outside.append(address)


def test_page_holds_every_figure_and_nothing_from_outside(run):
    html = run.page.read_text(encoding="utf-8")
    outline = Outline()
    outline.feed(html)
    assert len(outline.images) == len(FIGURES)
    assert min(outline.images) > 10_000
    assert not outline.outside
    for figure in FIGURES.values():
        assert escape(figure.title) in html
    assert "A tiny run" in html


@pytest.mark.slow
def test_same_tables_with_two_jobs(few, tmp_path):
    reproduce(tmp_path, FEW, settings=Settings.tiny(), jobs=2)
    assert tables_of(tmp_path) == few


@pytest.mark.slow
def test_same_tables_after_being_killed(few, tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), ",".join(FEW)])
    assert killed.returncode < 0
    kept = {path for path in (tmp_path / ".store").rglob("*") if path.is_file()}
    assert kept
    assert not tables_of(tmp_path)
    first = []
    reproduce(
        tmp_path,
        FEW,
        settings=Settings.tiny(),
        progress=lambda done, total, _: first.append((done, total)),
    )
    assert 0 < first[0][0] < first[0][1]  # it continued and did not begin again
    assert tables_of(tmp_path) == few


def test_another_seed_gives_other_data(few, tmp_path, blank_pictures):
    reproduce(tmp_path, ["leakage"], settings=Settings.tiny(seed=1))
    assert tables_of(tmp_path)["leakage.csv"] != few["leakage.csv"]


def test_claims_without_their_tables_are_not_tested(tmp_path):
    found = reproduce(tmp_path, ["fig1"], settings=Settings.tiny())
    verdicts = {claim.key: finding.verdict.value for claim, finding in found.claims}
    assert verdicts.pop("l") != "not tested in this run"
    assert set(verdicts.values()) == {"not tested in this run"}
    assert not (tmp_path / ".store").exists()


def test_unknown_figure_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match="no figure 'fig9'"):
        reproduce(tmp_path / "x", ["fig1", "fig9"], settings=Settings.tiny())
    assert not (tmp_path / "x").exists()


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def browse(folder, *options):
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
        "--no-first-run", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", f"--user-data-dir={folder / 'profile'}", "--hide-scrollbars",
        "--window-size=1200,2000", *options,
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, timeout=100, text=True, check=True).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_page_in_a_browser(run, tmp_path):
    import matplotlib.image
    import numpy as np

    address = run.page.resolve().as_uri()
    dom = browse(tmp_path, "--dump-dom", address)
    assert dom.count("<img") == len(FIGURES)
    assert "<title>Stabilizing private LASSO" in dom
    shot = tmp_path / "page.png"
    browse(tmp_path, f"--screenshot={shot}", address)
    picture = matplotlib.image.imread(shot)[..., :3]
    assert picture.shape[:2] == (2000, 1200)
    assert 0.01 < np.mean(picture < 0.5) < 0.5  # some dark pixels on a page that is mostly white
