"""One version everywhere: in the package, the changelog, the citation and the tags."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import privasso

ROOT = Path(__file__).parents[1]
# The version that is being prepared as long as the changelog has no dated section.
FIRST = "0.1.0"


def sections() -> list[tuple[str, str]]:
    """(version, date) of each section of the changelog; the date of one unreleased is empty."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    found = [re.fullmatch(r"\[(.+?)\](?: - (\d{4}-\d\d-\d\d))?", line) for line in headings]
    assert all(found), headings
    return [(match[1], match[2] or "") for match in found if match]


def released() -> list[str]:
    return [version for version, _ in sections() if version != "Unreleased"]


def test_the_changelog_is_in_order():
    found = sections()
    assert found[0] == ("Unreleased", "")
    dates = [date for _, date in found[1:]]
    assert all(dates)
    assert dates == sorted(dates, reverse=True)
    numbers = [tuple(map(int, version.split("."))) for version in released()]
    assert all(len(number) == 3 for number in numbers)
    assert numbers == sorted(set(numbers), reverse=True)


def test_the_version_is_the_newest_of_the_changelog():
    assert privasso.__version__ == [*released(), FIRST][0]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", citation, flags=re.MULTILINE) == [privasso.__version__]


def test_the_build_reads_the_version_where_it_stands():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    file = ROOT / settings["tool"]["hatch"]["version"]["path"]
    assert f'__version__ = "{privasso.__version__}"' in file.read_text(encoding="utf-8")


def tags() -> set[str]:
    """Tags of the form v1.2.3, without the v; a copy without its history has none."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return set()
    # Git refuses to read a folder that belongs to somebody else unless it is told to.
    command = [git, "-c", f"safe.directory={ROOT}", "tag", "--list", "v*"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {tag.removeprefix("v") for tag in run.stdout.split()}


def test_every_tag_of_a_version_is_in_the_changelog():
    assert tags() <= set(released())
