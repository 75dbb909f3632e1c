"""The page of file formats names every field that files have."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import privasso as pv

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
LABELS = pv.LabelDP(1.0, 1e-4, y_bounds=(0, 1))
RECORDS = pv.RecordDP(1.0, 1e-4, bounds=[(-1, 1)] * 2, y_bounds=(0, 1))
STATISTICS = pv.RecordDP(
    1.0, 1e-4, bounds=[(-1, 1)] * 2, y_bounds=(0, 1), mechanism="statistics", scales="private"
)


def named(heading: str) -> set[str]:
    """Names in the first column of the tables of a section."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\|([^|]+)\|", section, flags=re.MULTILINE)
    return set(re.findall(r"`(\w+)`", "".join(cells)))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    return X, (X[:, 0] + rng.standard_normal(200) > 0).astype(float)


@pytest.mark.parametrize(
    ("privacy", "binary"), [(LABELS, False), (LABELS, True), (RECORDS, False), (STATISTICS, False)]
)
def test_every_field_is_on_the_page(privacy, binary, table, tmp_path):
    kind = pv.PrivateLogisticLasso if binary else pv.PrivateLasso
    est = kind(privacy=privacy, intervals=True, random_state=0).fit(*table)
    pv.save(est, tmp_path / "model.json")
    model = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    known = named("The model file")
    assert known >= {*model, *model["guarantee"], *(model["noise"] or {})}
    if privacy is not RECORDS:
        name, heading = (
            ("statistics_", "The file of kept statistics")
            if privacy is STATISTICS
            else ("release_", "The file of a kept release")
        )
        pv.save_release(getattr(est, name), tmp_path / "kept.json")
        fields = json.loads((tmp_path / "kept.json").read_text(encoding="utf-8"))
        assert named(heading) >= set(fields)
