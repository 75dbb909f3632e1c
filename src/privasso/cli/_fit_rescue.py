"""Where a release is kept when a fit fails after its budget was spent."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

from privasso._text import escaped
from privasso.cli._fit_settings import FitSettings

if TYPE_CHECKING:
    from privasso.fit import KeptRelease, KeptStatistics


def keep_somewhere(
    settings: FitSettings, kept: KeptRelease | KeptStatistics | None, where: Path | None
) -> str:
    """Make sure that the release is kept; say where it is and how to use it.

    `where` is the file that holds it already, if one does.
    """
    from privasso.artefact import release_text

    if kept is None:
        return ""
    try:
        if where is None:
            where = rescue(settings, kept)
        shown = escaped(where)
        return f"in {shown}, and using it with --from-release {shown} costs no further privacy"
    except OSError:
        print(release_text(kept))
        return (
            "on standard output alone: save it as a file, and using it with --from-release FILE "
            "costs no further privacy"
        )


def rescue(settings: FitSettings, kept: KeptRelease | KeptStatistics) -> Path:
    """Write the release beside the model under a name that does not exist yet."""
    from privasso._files import write_whole
    from privasso.artefact import release_text

    assert settings.out is not None
    for k in range(1, 1000):
        suffix = ".release.json" if k == 1 else f".release-{k}.json"
        path = settings.out.with_suffix(suffix)
        try:
            write_whole(path, release_text(kept), replace=False)
            return path
        except FileExistsError:
            continue
    raise FileExistsError(errno.EEXIST, "no free name for the release", str(settings.out))
