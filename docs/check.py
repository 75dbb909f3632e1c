"""Checks of the pages that were built: links, accessibility, formulas and search without a network.

`make docs` runs it after the build. It needs Chromium; without one only the links are checked,
except in continuous integration, where this is an error.
"""

import os
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Pages that readers see first; the others share their layout.
PAGES = (
    "index.html",
    "choose.html",
    "fit.html",
    "records.html",
    "release.html",
    "scale.html",
    "audit.html",
    "glossary.html",
    "reference.html",
    "reference/fits.html",
    "reference/names/PrivateLasso.html",
    "reference/commands/fit.html",
    "real-tables.html",
    "explore.html",
    "_static/explorer.html",
    "auto_gallery/index.html",
    "claims.html",
    "tutorials/publish.html",
)

#: What the search must show first: pages, not methods and options.
SEARCHES = {
    "optimal_design": "reference/names/optimal_design.html",
    "PrivateLasso": "reference/names/PrivateLasso.html",
    "privasso fit": "reference/commands/fit.html",
    "evaluation": "evaluate.html",
    "explorer": "explore.html",
}


class Anchors(HTMLParser):
    """Addresses that a page names, and places in it that others can name."""

    def __init__(self):
        super().__init__()
        self.addresses, self.places = [], set()

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}
        address = found.get("href") or found.get("src")
        if address and tag != "link":
            self.addresses.append(address)


def malformed(address):
    """Say what is wrong with the form of an address outside of the documentation, or None.

    Whether it answers cannot be checked without a network.

    >>> malformed("https://arxiv.org/abs/2605.01492"), malformed("https://arxiv.org/abs/26.1")
    (None, 'is no paper of arXiv')
    >>> malformed("http://example.org"), malformed("https://example.org/a).")
    ('is not https', 'ends in punctuation')
    """
    parts = urlsplit(address)
    if parts.scheme == "mailto":
        return None if re.fullmatch(r"[^@\s]+@[^@\s]+\.[a-z]+", parts.path) else "is no address"
    if parts.scheme != "https":
        return "is not https"
    if not re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", parts.hostname or ""):
        return "names no host"
    if re.search(r"[\s<>\"{}|\\^`]", address):
        return "has a character that must be written as a code"
    if re.search(r"[.,;:!)\]]$", address):
        return "ends in punctuation"
    if parts.hostname == "arxiv.org" and not re.fullmatch(
        r"/(abs|pdf)/(\d{4}\.\d{4,5}(v\d+)?|[a-z-]+(\.[A-Z]{2})?/\d{7})", parts.path
    ):
        return "is no paper of arXiv"
    if parts.hostname == "doi.org" and not re.fullmatch(r"/10\.\d{4,9}/\S+", parts.path):
        return "is no DOI"
    return None


def broken_links(root):
    """Yield every address inside of the documentation that leads nowhere, and malformed others."""
    pages = {}
    for file in root.rglob("*.html"):
        if file.name != "explorer.html":
            parser = Anchors()
            parser.feed(file.read_text(encoding="utf-8"))
            pages[file.resolve()] = parser
    for file, parser in pages.items():
        for address in parser.addresses:
            parts = urlsplit(address)
            if (parts.scheme or parts.netloc) and parts.scheme != "data":
                if problem := malformed(address):
                    yield f"{file.name}: {address} {problem}"
                continue
            if parts.scheme or address.startswith("#"):
                continue
            target = (file.parent / unquote(parts.path)).resolve()
            if not target.exists():
                yield f"{file.name}: {address} is missing"
            elif target in pages and unquote(parts.fragment) not in pages[target].places | {""}:
                yield f"{file.name}: {address} has no such place"


def barriers(root, chromium):
    """Yield what axe-core finds serious, requests that leave the folder, and a search in vain.

    Pages in the dark are as narrow as on a phone, and must not be wider than that.
    """
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme, width in (("light", 1280), ("dark", 400)):
            context = browser.new_context(
                bypass_csp=True,
                offline=True,
                color_scheme=scheme,
                viewport={"width": width, "height": 900},
            )
            page = context.new_page()
            asked = []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            for name in PAGES:
                page.goto((root / name).as_uri())
                page.wait_for_timeout(500)
                for each in Axe().run(page).response["violations"]:
                    if each["impact"] in ("serious", "critical"):
                        for node in each["nodes"]:
                            yield f"{name} ({scheme}): {each['id']}: {node['html'][:160]}"
            for name in sorted({*PAGES, *(file.name for file in root.glob("*.html"))}):
                page.goto((root / name).as_uri())
                page.wait_for_timeout(100)
                if page.evaluate("document.documentElement.scrollWidth") > width:
                    yield f"{name} is wider than {width} pixels"
            for words, first in SEARCHES.items():
                page.goto((root / "search.html").as_uri() + f"?q={words}")
                try:
                    page.wait_for_selector("ul.search li a", timeout=10_000)
                except Exception:
                    yield f"the search finds nothing for {words} without a network"
                    continue
                found = page.locator("ul.search li a").first.get_attribute("href") or ""
                if first not in found.partition("?")[0]:
                    yield f"the search for {words} begins with {found} instead of {first}"
            page.goto((root / "derivations.html").as_uri())
            if page.locator("math").count() < 10:
                yield "derivations.html shows no formulas"
            yield from (
                f"a page asks for {url}" for url in asked if not url.startswith(("file:", "data:"))
            )
            context.close()
        browser.close()


def main():
    root = Path(sys.argv[1]).resolve()
    found = list(broken_links(root))
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium:
        found += barriers(root, chromium)
    elif os.environ.get("CI"):
        found.append("no Chromium is installed")
    else:
        print("no Chromium is installed: only links were checked")
    print("\n".join(found) or "links, accessibility, formulas and search are as they should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
