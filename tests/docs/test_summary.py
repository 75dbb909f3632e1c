"""Files and pages that follow from other files in `docs/data` are what their commands write."""

import csv
import json

import pytest

from bench import claims, summary
from bench.page import DATA


@pytest.mark.parametrize("name", summary.TABLES)
def test_a_summary_follows_from_the_files_it_is_made_of(name):
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as source:
        kept = list(csv.DictReader(source))
    assert kept == summary.TABLES[name]().to_dicts()


def test_the_page_of_the_claims_is_what_a_run_found():
    record = json.loads(claims.RECORD.read_text(encoding="utf-8"))
    assert claims.PAGE.read_text(encoding="utf-8") == claims.page(record)
    assert [one["key"] for one in record["claims"]] == [claim.key for claim in claims.CLAIMS]
    assert "provisional" not in record["header"]  # what a smaller run says of itself
    assert record["header"].count("Claims") == 2


def test_a_target_that_is_missed_is_marked():
    rows = {row["what"]: row for row in summary.targets().to_dicts()}
    passes = rows["passes over F in a solve"]
    measured = summary.column("bench-single", "passes")
    assert float(passes["worst"]) == pytest.approx(measured.max(), rel=0.01)
    missed = sum(value > 8.0 for value in measured)
    assert missed > 0
    assert passes["verdict"] == f"**missed** in {missed} of {measured.size}"
