"""The claims of the paper for the documentation, from the folder of a run.

``python -m bench.claims FOLDER --write`` takes what ``privasso reproduce --out FOLDER`` wrote, and
renews `docs/claims.md`, `docs/data/claims.json`, `docs/data/claims-facts.csv` and the pictures of
the figures in `docs/images`.
"""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import polars as pl

from bench.page import DATA, write
from privasso._files import write_whole
from privasso.paper._claim import ClaimVerdict, Decided, Finding, Numbers, markdown
from privasso.paper._reproduce import CLAIMS, FIGURES

DOCS = DATA.parent
PAGE, RECORD = DOCS / "claims.md", DATA / "claims.json"
COMMAND = "python -m bench.claims reproduction --write"
#: Tables with more rows are files of their own.
MOST = 6


def page(record: dict[str, Any]) -> str:
    """The page of the claims, from what a run found; long tables are linked."""
    known = {claim.key: claim for claim in CLAIMS}
    decided: Decided = []
    for one in record["claims"]:
        tables = [Numbers.of(table["title"], table["rows"]) for table in one["tables"]]
        short = tuple(table for table in tables if len(table.rows) <= MOST)
        links = [f"[{table.title}](data/{name(one['key'])}.csv)." for table in long(tables)]
        measured = " ".join([one["measured"], *links])
        finding = Finding(ClaimVerdict(one["verdict"]), measured, one["values"], short)
        decided.append((known[one["key"]], finding))
    return markdown(decided, record["header"])


def name(key: str) -> str:
    """The file of the long table of a claim, of which there is at most one."""
    return f"claims-{key}"


def long(tables: list[Numbers]) -> list[Numbers]:
    """The tables that are files of their own."""
    return [table for table in tables if len(table.rows) > MOST]


def facts(folder: Path, found: list[dict[str, Any]]) -> dict[str, str]:
    """What the page about the reproduction says in numbers."""
    claims = {one["key"]: one for one in found}
    values = {key: one["values"] for key, one in claims.items()}
    ours = {claim.key for claim in CLAIMS if claim.ours}
    verdicts = [one["verdict"] for one in found if one["key"] not in ours]
    pairs = [pair for pair in values["a"].values() if None not in pair]
    above = [gram / isotropic for isotropic, gram in pairs]
    runs = pl.concat(
        pl.read_csv(folder / "tables" / f"{figure}_points.csv", infer_schema_length=None).select(
            "samples", "amp_converged", "amp_unbounded", "amp_flicker", "amp_diverged"
        )
        for figure in ("fig3", "fig4")
    ).sum()
    counts = {each: int(runs[each][0]) for each in runs.columns}
    failed = counts["samples"] - counts["amp_converged"]
    some, doubled, _ = zip(*values["b"]["ratios"], strict=True)
    b, f, j, i, r, s = (values[key] for key in "bfjirs")
    h, k = (_words(values[key]) for key in "hk")
    largest = [row["largest N"].split("%")[0] for row in claims["i"]["tables"][0]["rows"]]
    joint = claims["j"]["tables"][0]["rows"][1]
    return {
        **{word: str(verdicts.count(word)) for word in ("confirmed", "partly", "undecided")},
        "contradicted": str(verdicts.count("contradicted")), "claims": str(len(verdicts)),
        "noise low": f"{min(above):.1f}", "noise high": f"{max(above):.1f}",
        "λ v1": f"{values['c']['v1']:.1f}", "λ v2": f"{values['c']['v2']:.1f}",
        "runs": f"{counts['samples']:,}", "failed": f"{failed:,}",
        "without minimiser": f"{100 * counts['amp_unbounded'] / failed:.0f}",
        "blown up": str(counts["amp_diverged"]), "unsettled": f"{counts['amp_flicker']:,}",
        "agree": str(f["agree"]), "stable": str(f["points"]),
        "beyond": str(f["converged_beyond_prediction"]), "of all": f"{100 * f['share_of_all']:.0f}",
        "probe": str(values["e"]["probe_exists"]), "probe AMP": str(values["e"]["probe_converged"]),
        "later": str(b["later"]), "differ": str(b["later"] + b["earlier"]),
        "some low": f"{min(some):.2f}", "some high": f"{max(some):.2f}",
        "doubled low": f"{min(doubled):.1f}", "doubled high": f"{max(doubled):.1f}",
        "excess": f"{100 * b['largest_predicted_excess']:.0f}",
        "better": str(h.count("better")), "equal": str(h.count("equal")), "cases": str(len(h)),
        "worse than v": str(k.count("worse")), "mixed with v": str(k.count("mixed")),
        "understated": str(j["understated"]), "points": str(j["points"]),
        "largest ratio": f"{j['largest_ratio']:.1f}", "joint": str(j["joint_agrees"]),
        "joint ratio": list(joint.values())[-1],
        "kkt least": f"{min(map(float, largest)):.1f}",
        "kkt most": f"{max(map(float, largest)):.1f}",
        "slowest exponent": f"{max(i['exponents']):.2f}",
        "similar": str(r["higher"]), "similar cases": str(r["cases"]),
        "similar later": str(r["later"]), "similar differ": str(r["later"] + r["earlier"]),
        "small changed": str(s["changed"]), "small leaking": str(s["leaking"]),
        "small hidden": str(s["hidden"]), "small safer": str(s["safer"]),
    }  # fmt: skip


def _words(values: dict[str, Any]) -> list[str]:
    return [word for case in values.values() for word in case["words"]]


def small(picture: bytes) -> bytes:
    """The picture with 128 colours, which is a third of its size."""
    from PIL import Image

    with Image.open(io.BytesIO(picture)) as image:
        plain = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        out = io.BytesIO()
        plain.save(out, format="png", optimize=True)
    return out.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.claims", description=__doc__)
    parser.add_argument("folder", type=Path, help="what privasso reproduce wrote")
    parser.add_argument("--write", action="store_true", help="renew the documentation")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    found = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    header = (folder / "claims.md").read_text(encoding="utf-8").split("\n\n")[1]
    record = {"header": header, "claims": found}
    known = facts(folder, found)
    print(known)
    if arguments.write:
        text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
        write_whole(RECORD, text + "\n")
        write_whole(PAGE, page(record))
        table = pl.DataFrame({"fact": list(known), "value": list(known.values())})
        write("claims-facts", table, COMMAND)
        for one in found:
            for numbers in long([Numbers.of(x["title"], x["rows"]) for x in one["tables"]]):
                rows = pl.DataFrame(numbers.rows, schema=list(numbers.columns), orient="row")
                write(name(one["key"]), rows, COMMAND)
        for figure in FIGURES:
            picture = (folder / "figures" / f"{figure}.png").read_bytes()
            write_whole(DOCS / "images" / f"paper-{figure}.png", small(picture))


if __name__ == "__main__":
    main()
