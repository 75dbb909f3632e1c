"""The page: one document with its style and script inside, which loads nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from html import escape
from importlib.resources import files

from privasso.explore._settings import (
    COMPARED,
    CORRELATION,
    DATA,
    ESTIMATE,
    LAW,
    MOST_COLUMNS,
    NOISE,
    USUAL_CORRELATED,
    Control,
    Settings,
    every_control,
)

LAW_NAMES = {
    "uniform": "uniform on an interval",
    "lognormal": "log-normal",
    "constant": "all the same",
    "own": "my own",
}
#: A further measure of privacy for the trade-off curves.
EPSILON_CHOICE = '<option value="epsilon">ε of the labels, Fᵀy released</option>'
CORRELATION_NAMES = {
    "none": "none: independent columns",
    "ar": "of neighbours, AR(1)",
    "blocks": "within blocks",
    "factors": "by common factors",
    "table": "that of my table",
}


def page(settings: Settings) -> tuple[str, str]:
    """Return the page that asks its server, and its content security policy."""
    start = settings.to_dict()
    controls = [asdict(control) for control in every_control()]
    spec = {
        "controls": {each["name"]: {**each, "start": start[each["name"]]} for each in controls},
        "compared": list(COMPARED),
        "fine": True,
        "correlated": USUAL_CORRELATED,
    }
    places = {
        "INTRO": "",
        "CONTROLS": _live_controls(settings),
        "EPSILON": EPSILON_CHOICE,
        "ATTACK": asset("attack.html"),
        "CORRELATED": asset("correlated.html"),
        "COPY": asset("copy.html"),
    }
    scripts = ["plots.js", "live.js", "correlated.js", "app.js"]
    return document(spec, scripts, places, connect="'self'")


def document(
    spec: dict[str, object],
    scripts: Iterable[str],
    places: dict[str, str],
    *,
    constants: str = "",
    connect: str = "'none'",
) -> tuple[str, str]:
    """Return a document made of the assets, and the policy that allows just what is in it."""
    body = asset("explorer.html")
    for name, text in places.items():
        body = body.replace(f"<!--{name}-->", text)
    style = asset("explorer.css")
    # In a script "</" would end it.
    told = json.dumps(spec, ensure_ascii=False).replace("</", "<\\/")
    script = f'"use strict";\nconst SPEC = {told};\n{constants}\n' + "\n".join(map(asset, scripts))
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        f"img-src data:; connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="generator" content="privasso explorer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>privasso explorer</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n"
        "<noscript><p>This page needs JavaScript.</p></noscript>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    ), policy


def asset(name: str) -> str:
    """Return the text of a file that comes with the package."""
    return files("privasso.explore").joinpath("assets", name).read_text(encoding="utf-8")


def slider(control: Control, *, exact: bool = True) -> str:
    """A slider with its label, its explanation and a field for exact values."""
    name, label = control.name, escape(control.label)
    least = 'min="0" ' if control.low >= 0.0 else ""
    value = (
        f'<input type="number" {least}step="any" aria-label="{label}, exact value">'
        if exact
        else f'<output class="value" for="{name}"></output>'
    )
    return (
        f'<div class="control" data-name="{name}"><div class="row">'
        f'<label for="{name}">{label}</label>{value}</div>'
        f'<input type="range" id="{name}" aria-describedby="{name}-help">'
        f'<p class="help" id="{name}-help">{escape(control.help)}</p></div>'
    )


def choice(
    name: str, label: str, words: dict[str, str], names: Iterable[str], chosen: str, help: str = ""
) -> str:
    """A list to choose from; `words` are what its names stand for."""
    options = "".join(
        f'<option value="{each}"{" selected" if each == chosen else ""}>{words[each]}</option>'
        for each in names
    )
    described = f' aria-describedby="{name}-help"' if help else ""
    text = f'<p class="help" id="{name}-help">{help}</p>' if help else ""
    return (
        f'<div class="control"><label for="{name}">{label}</label><br>'
        f'<select id="{name}" data-change{described}>{options}</select>{text}</div>'
    )


def law_choice(names: Iterable[str], chosen: str) -> str:
    """The list of laws of the scales."""
    return choice("law", "Scales of the columns", LAW_NAMES, names, chosen)


def fieldset(legend: str, *parts: str) -> str:
    """Controls that belong together."""
    return f"<fieldset><legend>{escape(legend)}</legend>{''.join(parts)}</fieldset>"


def _live_controls(settings: Settings) -> str:
    own = (
        '<div data-law="own" class="control"><label for="scales">Scales, one per column</label>'
        f'<textarea id="scales" data-change spellcheck="false" aria-describedby="scales-help">'
        f"{' '.join(f'{s:.6g}' for s in settings.scales)}</textarea>"
        '<p class="help" id="scales-help">Numbers with spaces between them. Only this machine sees '
        "them.</p></div>"
    )
    some = settings.n_features is not None
    columns = (
        '<div class="control" role="radiogroup" aria-label="Number of columns, N">'
        + _choice("columns", "many", "The limit of many columns", not some)
        + _choice("columns", "some", "This number of columns:", some)
        + f'<input type="number" id="n_features" min="1" max="{MOST_COLUMNS}" step="1" data-change '
        f'value="{settings.n_features or 1000}" aria-label="Number of columns, N"></div>'
    )
    by_level = settings.noise_by == "level"
    noise = (
        '<div class="control" role="radiogroup" aria-label="What sets the level of the noise">'
        + _choice("noise_by", "level", "Level given", by_level)
        + _choice("noise_by", "labels", "Level from (ε, δ) for the labels", not by_level)
        + "</div>"
        + _sliders("noise", NOISE)
    )
    return "\n".join(
        [
            fieldset("Estimate", *map(slider, ESTIMATE), noise),
            fieldset(
                "Data",
                *map(slider, DATA),
                law_choice(LAW_NAMES, settings.law),
                _sliders("law", LAW),
                own,
            ),
            fieldset("Correlation of the columns", _correlation(settings)),
            fieldset("Number of columns", columns),
        ]
    )


def _correlation(settings: Settings) -> str:
    names = [name for name in CORRELATION_NAMES if name != "table" or settings.covariance]
    help = (
        "Predictions for correlated columns are simulated and have a table of their own; "
        "everything else is for independent columns."
    )
    chosen = choice("correlation", "Kind", CORRELATION_NAMES, names, settings.correlation, help)
    return chosen + _sliders("correlation", CORRELATION)


def _sliders(kind: str, groups: dict[str, tuple[Control, ...]]) -> str:
    """The sliders of each choice; the page shows those of the one that is chosen."""
    return "".join(
        f'<div data-{kind}="{name}">{"".join(map(slider, controls))}</div>'
        for name, controls in groups.items()
    )


def _choice(name: str, value: str, label: str, chosen: bool) -> str:
    mark = " checked" if chosen else ""
    return (
        f'<label class="choice"><input type="radio" name="{name}" value="{value}" data-change'
        f"{mark}> {escape(label)}</label>"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
