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
_CORRELATED = (
    "Predictions for correlated columns are simulated and have a table of their own; everything "
    "else is for independent columns."
)
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
    correlations = [name for name in CORRELATION_NAMES if name != "table" or settings.covariance]
    chosen = choice(
        "correlation", "Kind", CORRELATION_NAMES, correlations, settings.correlation, _CORRELATED
    )
    places = {
        "INTRO": "",
        "CONTROLS": asset("controls.html"),
        "ESTIMATE": "".join(map(slider, ESTIMATE)),
        "NOISE": _sliders("noise", NOISE),
        "DATA": "".join(map(slider, DATA))
        + law_choice(LAW_NAMES, settings.law)
        + _sliders("law", LAW),
        "SCALES": " ".join(f"{s:.6g}" for s in settings.scales),
        "CORRELATION": chosen + _sliders("correlation", CORRELATION),
        "MOST": str(MOST_COLUMNS),
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


def _sliders(kind: str, groups: dict[str, tuple[Control, ...]]) -> str:
    """The sliders of each choice; the page shows those of the one that is chosen."""
    return "".join(
        f'<div data-{kind}="{name}">{"".join(map(slider, controls))}</div>'
        for name, controls in groups.items()
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
