"""Where a release is kept when a fit fails after its budget was spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privasso.cli._fit_settings import FitSettings

if TYPE_CHECKING:
    from privasso.fit import KeptRelease


def keep_somewhere(settings: FitSettings, kept: KeptRelease | None) -> str:
    """Make sure that the release is kept; say where it is and how to use it."""
    from privasso.artefact import release_text

    if kept is None:
        return ""
    where = settings.keep_release
    try:
        if where is None or not where.exists():
            where = _rescue(settings, kept)
        return f"in {where}, and using it with --from-release {where} costs no further privacy"
    except OSError:
        print(release_text(kept))
        return (
            "on standard output alone: save it as a file, and using it with --from-release FILE "
            "costs no further privacy"
        )


def _rescue(settings: FitSettings, kept: KeptRelease) -> Path:
    """Write the release beside the model under a name that does not exist yet."""
    from privasso._files import write_whole
    from privasso.artefact import release_text

    assert settings.out is not None
    for k in range(1, 1000):
        suffix = ".release.json" if k == 1 else f".release-{k}.json"
        path = settings.out.with_suffix(suffix)
        if not path.exists():
            write_whole(path, release_text(kept))
            return path
    raise RuntimeError(f"no free name for the release beside {settings.out}")
