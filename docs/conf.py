"""Configuration of the documentation build (`make docs`)."""

import re
import sys
from pathlib import Path

from privasso import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from reference import files, typed

project = "privasso"
author = "the privasso developers"
project_copyright = "2026, the privasso developers"
release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "results",
    "mathml",
    "linked",
    "sphinx_gallery.gen_gallery",
]
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "within_subsection_order": "FileNameSortKey",
    "image_srcset": ["2x"],  # for screens with twice as many pixels
    "abort_on_example_error": True,  # a script of the gallery that fails, fails the build
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e9,  # times of one machine mean nothing on another
    "write_computation_times": False,
    "image_scrapers": ("matplotlib",),
    "remove_config_comments": True,
    "backreferences_dir": "auto_gallery/uses",  # examples of each name, for its page
    "doc_module": ("privasso",),
    "reference_url": {"privasso": None},
}
templates_path = ["_templates"]
autosummary_context = {"typed": {full: typed(full) for full in files()}}
autosummary_filename_map = files()
autosummary_ignore_module_all = False
add_module_names = False  # the headings say what is typed
toc_object_entries_show_parents = "hide"
default_role = "py:obj"  # names in docstrings
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the numpy-style sections already state the types
napoleon_google_docstring = False
napoleon_use_ivar = True  # else a dataclass field is described twice
# Words of a type such as "ndarray, shape (N,)" are looked up as names, and several classes have a
# `shape`; no such link is meant.
suppress_warnings = ["ref.python"]
exclude_patterns = ["_build", "gallery", "_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_ext" / "scorer.js")
html_theme = "furo"
html_title = f"privasso {release}"


def write_explorer(app):
    """Write the page of the explorer, which takes some seconds, if it is not there yet."""
    from privasso.explore import static_page

    file = Path(app.outdir) / "_static" / "explorer.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_text(static_page(), encoding="utf-8")


def level_of_captions(app, pagename, templatename, context, doctree):
    """Say of which level the captions of the navigation are, without which they are no headings."""
    tree = context.get("furo_navigation_tree")
    if tree:
        context["furo_navigation_tree"] = tree.replace(
            'role="heading"', 'role="heading" aria-level="2"'
        )


def reachable_code(app, pagename, templatename, context, doctree):
    """Let keyboards reach what scrolls where it is wide: code, pictures, tables and formulas."""
    if context.get("body"):
        body = context["body"].replace("<pre>", '<pre tabindex="0">')
        body = body.replace("<p><img ", '<p tabindex="0"><img ')
        body = re.sub(r"(<img [^>]*sphx-glr-single-img[^>]*>)", r'<p tabindex="0">\1</p>', body)
        for kind in ("table-wrapper", "formula"):
            body = body.replace(f'<div class="{kind}', f'<div tabindex="0" class="{kind}')
        context["body"] = body


#: Cells of one short word, a number with a unit or a comparison, and sizes of tables.
WORDS = r"[^\s<]{1,14}|[\d.,]+ [a-zA-Z]{1,2}|(?:[≤≥]|&[lg]t;) \S+|[\d,]+ × [\d,]+"


def whole_words(app, pagename, templatename, context, doctree):
    """Mark cells of a table, such as 1e-14, that are not broken."""
    if context.get("body"):
        context["body"] = re.sub(
            rf"(<td[^>]*>)<p>({WORDS})</p>", r'\1<p class="word">\2</p>', context["body"]
        )


def no_false_links(app, pagename, templatename, context, doctree):
    """Take links from words of a type, such as shape, that are also names of attributes."""
    if context.get("body"):
        link = r'<a class="reference internal" [^>]*><em>(shape|n_features)</em></a>'
        context["body"] = re.sub(link, r"<em>\1</em>", context["body"])


def keep_underscores(app, what, name, obj, options, lines):
    """Keep the last character of attributes such as coef_, which would be the mark of a link."""
    for k, line in enumerate(lines):
        lines[k] = re.sub(r"^(:(?:ivar|vartype) \w+)_:", r"\1\\_:", line)


def setup(app):
    app.connect("autodoc-process-docstring", keep_underscores, priority=900)  # after napoleon
    app.connect("build-finished", lambda app, error: error or write_explorer(app))
    app.connect("html-page-context", level_of_captions, priority=900)  # after the theme
    app.connect("html-page-context", reachable_code)
    app.connect("html-page-context", whole_words)
    app.connect("html-page-context", no_false_links)
