"""A fit that fails once the budget is spent: the release is kept for the user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privasso.cli._fit_settings import FitSettings

if TYPE_CHECKING:
    from privasso.artefact import KeptRelease


def after_the_release(
    error: BaseException, settings: FitSettings, kept: KeptRelease
) -> BaseException:
    """What to raise when something fails once the noise is drawn; keeps the release."""
    from privasso.artefact import kept_text

    if kept.guarantee.kind == "label-dp":
        where = settings.keep_release
        try:
            if where is None or not where.exists():
                where = _rescue(settings, kept)
            kept_in = f"in {where}, and --from-release {where}"
        except OSError:
            print(kept_text(kept))
            kept_in = "on standard output alone: save it as a file, and --from-release FILE"
        text = (
            f"the privacy budget of this fit is spent, and nothing is lost: the release is kept "
            f"{kept_in} with another --lam or --out is free; what happened: {error}"
        )
    else:
        text = (
            "the noise of this fit has been drawn and is gone, and nothing was published; fit "
            f"again with a larger --lam or a smaller --sigma; what happened: {error}"
        )
    expected = isinstance(error, (ValueError, RuntimeError, OSError))
    if expected:
        return ValueError(text)
    error.add_note(text)
    return error


def _rescue(settings: FitSettings, kept: KeptRelease) -> Path:
    """Write the release beside the model under a name that is free."""
    from privasso._files import write_whole
    from privasso.artefact import kept_text

    assert settings.out is not None
    for k in range(1, 1000):
        suffix = ".release.json" if k == 1 else f".release-{k}.json"
        path = settings.out.with_suffix(suffix)
        if not path.exists():
            write_whole(path, kept_text(kept))
            return path
    raise RuntimeError(f"no free name for the release beside {settings.out}")
