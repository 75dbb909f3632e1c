"""Every promise of SECURITY.md names a test, and the test is there."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
TEXT = (TESTS.parent / "SECURITY.md").read_text(encoding="utf-8")


def test_every_promise_has_a_test():
    promised = TEXT.partition("## What is promised\n")[2].partition("\n## ")[0]
    promises = re.split(r"^- \*\*", promised, flags=re.MULTILINE)[1:]
    assert len(promises) > 8
    for promise in promises:
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", promise)
        assert named, promise
        for file, name in named:
            assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8"), (file, name)
