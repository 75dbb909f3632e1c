"""The explorer in a real browser: every control, the numbers, the speed, accessibility."""

import contextlib
import io
import json
import math
import re
import threading
import time
from typing import Any

import numpy as np
import polars as pl
import pytest

import privasso as pv
from browser import chromium, serious
from privasso.accounting import gaussian_epsilon
from privasso.cli import main
from privasso.explore import Explorer, Settings, answer, settings_of, static_page
from privasso.tables import open_table
from privasso.theory import label_sensitivity

NUMBERS = ("E", "rho_hat", "stability", "onavekl", "advantage", "sigma")
SCALES = [0.1, 0.5, 1.0, 3.0]


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def server():
    for what in ("point", "curves", "map", "attack"):
        answer(what, Settings())  # as the command does, so that no test waits for a compiler
    with Explorer(Settings()) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


class Opened:
    """The page, with everything it complained about or asked for."""

    def __init__(self, browser, url, **options):
        self.page = browser.new_page(**options)
        self.errors, self.requests = [], []
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        begun = time.perf_counter()
        self.page.goto(url)
        self.wait("shown")
        self.first_view = time.perf_counter() - begun

    def wait(self, what):
        """Wait until what is shown is about the present state of the controls."""
        state = "document.documentElement.dataset"
        for _ in range(2000):
            if self.page.evaluate(f"{state}.{what} === {state}.version"):
                return
            self.page.wait_for_timeout(2)
        raise AssertionError(f"the page was never {what}")

    def numbers(self):
        return {
            name: float(text) if (text := self.page.get_attribute(f"#out-{name}", "data-value"))
            else math.nan
            for name in NUMBERS
        }  # fmt: skip


@pytest.fixture(scope="module")
def opened(browser, server):
    found = Opened(browser, server.url, viewport={"width": 1280, "height": 900})
    yield found
    assert found.errors == []
    assert all(url.startswith((server.url, "data:")) for url in found.requests)


def run_shown(opened):
    """The five numbers that the Python code on the page prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(opened.page.inner_text("#python"), {})
    return [float(word) for word in out.getvalue().split()]


def check(opened, capsys):
    """What is shown is what the code and the command on the page compute."""
    opened.wait("shown")
    found = opened.numbers()
    expected = run_shown(opened)
    shown = [found[name] for name in ("E", "rho_hat", "stability", "onavekl", "advantage")]
    known = [value if math.isfinite(value) else math.nan for value in expected]
    np.testing.assert_allclose(shown, known, rtol=1e-12)
    capsys.readouterr()
    assert main([*opened.page.inner_text("#command").split()[1:], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["E"] == pytest.approx(found["E"], nan_ok=True) or told["E"] is None
    return found


def test_the_first_view(opened):
    assert opened.first_view < 2.0


def test_the_point_that_is_set_lies_on_its_curve(opened):
    page = opened.page
    path = page.get_attribute("#curves path.yours", "d")
    corners = [[float(x) for x in pair.split()] for pair in re.split("[ML]", path) if pair]
    mark = [float(page.get_attribute("#curves circle.here", name)) for name in ("cx", "cy")]
    assert any(np.allclose(corner, mark, atol=0.06) for corner in corners)


@pytest.mark.parametrize(
    "names",
    [
        "lam gamma sigma alpha rho sigma_xi low high",
        "lognormal mu spread",
        pytest.param("constant value", marks=pytest.mark.slow),
        "labels epsilon delta width",
    ],
)
def test_every_slider_by_keyboard(opened, capsys, names):
    page = opened.page
    first, *rest = names.split()
    page.reload()
    opened.wait("shown")
    if first == "labels":
        page.locator("#gamma").fill("67")  # noise that protects labels at all
        page.locator("input[value=labels]").check()
    elif first in ("lognormal", "constant"):
        page.select_option("#law", first)
    else:
        rest.insert(0, first)
    opened.wait("shown")
    for name in rest:
        slider = page.locator(f"#{name}")
        before = opened.numbers()
        spoken = slider.get_attribute("aria-valuetext")
        slider.focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        opened.wait("shown")
        assert slider.get_attribute("aria-valuetext") != spoken
        assert opened.numbers() != before, name
    check(opened, capsys)


def test_exact_values_own_scales_and_columns(opened, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = opened.page
    page.reload()
    opened.wait("shown")
    page.select_option("#law", "own")
    page.fill("#scales", " ".join(map(str, SCALES)))
    page.locator(".control[data-name=lam] input[type=number]").fill("0.377")
    page.locator(".control[data-name=gamma] input[type=number]").fill("0.5")
    with page.expect_download() as download:
        page.click("#scales-file")
    download.value.save_as(tmp_path / "scales.txt")
    found = check(opened, capsys)
    model = pv.Model(scales=pv.Empirical(SCALES))
    fp = pv.state_evolution(model, 0.377, pv.PowerLaw(0.05, 0.5))
    assert found["E"] == pytest.approx(fp.E, rel=1e-12)
    page.locator("input[value=some]").check()
    page.fill("#n_features", "40")
    found = check(opened, capsys)
    fp = pv.state_evolution(model, 0.377, pv.PowerLaw(0.05, 0.5), n_features=40)
    assert found["onavekl"] == pytest.approx(fp.onavekl(), rel=1e-12)


def test_what_cannot_be_is_said(opened):
    page = opened.page
    page.reload()
    opened.wait("shown")
    page.locator("input[value=labels]").check()  # Gram-based noise on scales down to zero
    opened.wait("shown")
    assert "no level of this noise protects" in page.inner_text("#verdict")
    page.locator("input[value=level]").check()
    page.locator(".control[data-name=sigma] input[type=number]").fill("50")
    opened.wait("shown")
    assert "No estimator exists" in page.inner_text("#verdict")
    page.locator(".control[data-name=rho] input[type=number]").fill("2")
    opened.wait("shown")
    assert "must not exceed 1" in page.inner_text("#verdict")


def test_the_map_by_pointer_and_keyboard(opened, capsys):
    page = opened.page
    page.reload()
    opened.wait("shown")
    box = page.locator("#map svg").bounding_box()
    x, y = box["x"] + 0.4 * box["width"], box["y"] + 0.3 * box["height"]
    page.mouse.move(x, y)
    assert "OnAveKL" in page.inner_text("#map-readout")
    page.mouse.click(x, y)
    found = check(opened, capsys)
    page.focus("#map")
    page.keyboard.press("ArrowLeft")
    assert check(opened, capsys)["sigma"] < found["sigma"]
    for what in ("onavekl", "advantage", "rho_hat", "E"):
        page.select_option("#shown", what)
    for by in ("advantage", "epsilon", "onavekl"):
        page.select_option("#privacy", by)
    opened.wait("rested")
    assert "AUC" in page.inner_text("#attack-legend")
    assert "Error" in page.inner_text("#spoken")


@pytest.mark.parametrize(
    ("kind", "moved", "correlation"),
    [
        ("ar", {"neighbour_r": 0.6}, lambda r: pv.model.AutoRegressive(r["neighbour_r"])),
        pytest.param(
            "blocks",
            {"block_size": 4, "block_r": 0.7},
            lambda r: pv.model.Blocks(4, r["block_r"]),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "factors",
            {"n_factors": 3, "factor_share": 0.6},
            lambda r: pv.model.Factors(3, r["factor_share"]),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_correlated_columns(opened, capsys, kind, moved, correlation):
    page = opened.page
    page.reload()
    opened.wait("rested")
    assert "Choose a kind of correlation" in page.inner_text("#correlated-state")
    page.locator("input[value=some]").check()
    page.fill("#n_features", "60")
    page.select_option("#correlation", kind)
    for name, value in moved.items():
        before = page.get_attribute(f"#{name}", "aria-valuetext")
        page.focus(f"#{name}")
        page.keyboard.press("End")
        assert page.get_attribute(f"#{name}", "aria-valuetext") != before
        page.locator(f".control[data-name={name}] input[type=number]").fill(str(value))
    opened.wait("rested")
    assert page.locator("#correlated-progress").is_hidden()
    rows = page.locator("#correlated tbody tr")
    found = [float(rows.nth(k).get_attribute("data-value")) for k in range(5)]
    model = pv.Model(covariance=correlation(moved))
    fp = pv.state_evolution(model, 0.2, pv.Gram(0.05), n_features=60, rng=0)
    expected = [fp.E, fp.rho_hat, fp.stability, fp.onavekl(), fp.advantage()]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert f"± {fp.standard_errors.E:.2g}" in rows.nth(0).inner_text()
    np.testing.assert_allclose(run_shown(opened)[5:], expected, rtol=1e-12)
    capsys.readouterr()
    assert main([*page.inner_text("#command").split()[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["E"] == pytest.approx(fp.E)
    page.select_option("#correlation", "none")
    opened.wait("rested")
    assert rows.count() == 0


def test_what_cannot_be_of_correlated_columns(opened):
    page = opened.page
    page.reload()
    opened.wait("shown")
    page.select_option("#correlation", "blocks")
    page.locator(".control[data-name=block_size] input[type=number]").fill("2.5")
    opened.wait("rested")
    assert "must be a whole number" in page.inner_text("#correlated-state")
    assert opened.numbers()["E"] > 0.0  # the other numbers are as before


def test_the_covariance_of_a_table(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6)) * np.geomspace(0.1, 10.0, 6)
    X[:, 3] += X[:, 4]
    file = tmp_path / "table.csv"
    pl.DataFrame(X, schema=list("abcdef")).write_csv(file)
    settings = settings_of(open_table(file))
    unit = np.mean(X.var(axis=0))
    C = pv.model.GivenCovariance.of(X).covariance / 6.0 / unit
    with Explorer(settings) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        opened = Opened(browser, server.url)
        opened.wait("rested")
        row = opened.page.locator("#correlated tbody tr").first
        fp = pv.state_evolution(
            pv.Model(settings.alpha, covariance=C), 0.2, pv.PowerLaw(0.05, 1.0), rng=0
        )
        assert float(row.get_attribute("data-value") or "nan") == pytest.approx(fp.E, rel=1e-6)
        text = opened.page.content()
        assert f"{C[3, 4]:.4f}" not in text  # the page itself gets scales only
        opened.page.close()
        server.shutdown()


def updates(opened):
    """Milliseconds from the move of a slider to the numbers, curves and map, in the browser."""
    page = opened.page
    page.reload()
    opened.wait("rested")
    return page.evaluate(
        """async () => {
            const state = document.documentElement.dataset, found = [];
            for (let k = 0; k < 24; k += 1) {
                const slider = document.getElementById(["lam", "sigma", "alpha", "rho"][k % 4]);
                slider.value = Number(slider.value) + (k % 8 < 4 ? 3 : -2);
                const begun = performance.now();
                slider.dispatchEvent(new Event("input"));
                while (state.shown !== state.version) await new Promise((r) => setTimeout(r, 0));
                found.push(performance.now() - begun);
            }
            return found;
        }"""
    )


def test_updates_end(opened):
    assert np.median(updates(opened)) < 2000.0  # the machine may be busy with other tests


@pytest.mark.slow
def test_updates_are_quick(opened):
    """On an idle machine; `pytest -m slow tests/explore -s` prints what it takes."""
    times = np.sort(updates(opened))
    print(f"median {np.median(times):.0f} ms, 95 % {np.quantile(times, 0.95):.0f} ms")
    assert np.quantile(times, 0.95) < 100.0


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_accessibility_and_width(browser, server, scheme, width):
    size: Any = {"width": width, "height": 900}
    # The checker is a script, which the policy of the page forbids.
    context = browser.new_context(bypass_csp=True, color_scheme=scheme, viewport=size)
    with contextlib.closing(context):
        opened = Opened(context, server.url)
        opened.wait("rested")
        assert serious(opened.page) == []
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_from_a_table(browser, tmp_path):
    lam, sigma = (0.1, 0.2, 0.4), (0.05, 0.1, 0.2)
    file = tmp_path / "page.html"
    file.write_text(
        static_page(alpha=(0.5, 2.0), rho=(0.1, 0.3), lam=lam, sigma=sigma), encoding="utf-8"
    )
    context = browser.new_context(bypass_csp=True, viewport={"width": 400, "height": 900})
    with contextlib.closing(context):
        opened = Opened(context, file.as_uri())
        page = opened.page
        page.select_option("#law", "lognormal")
        for name in ("alpha", "rho", "lam", "gamma", "sigma"):
            page.focus(f"#{name}")
            page.keyboard.press("ArrowLeft")
            page.keyboard.press("ArrowRight")
        opened.wait("rested")
        model = pv.Model(alpha=2.0, rho=0.3, scales=pv.LogNormal(0.0, 0.5))
        fp = pv.state_evolution(model, 0.2, pv.Gram(0.1))
        found = opened.numbers()
        expected = [fp.E, fp.rho_hat, fp.stability, fp.onavekl(), fp.advantage()]
        shown = [found[name] for name in NUMBERS[:-1]]
        np.testing.assert_allclose(shown, expected, rtol=1e-5)
        assert serious(page) == []
        assert opened.errors == []
        assert all(url.startswith(("file:", "data:")) for url in opened.requests)
        attack, (curve,) = fp.attack(), page.evaluate("last.attack").values()
        (curve,) = curve
        assert curve["auc"] == pytest.approx(attack.auc, abs=2e-4)
        np.testing.assert_allclose(curve["true"], attack.tpr(curve["false"]), rtol=1e-4)
        deviation = math.sqrt(0.3 * model.scales.moment(1) + 0.1**2)
        for delta, width in ((1e-6, 6.0), (1e-5, 10.0)):  # before and after two moves
            mu = width * deviation * label_sensitivity(model, pv.Gram(1.0)) / 0.1
            found = page.evaluate("last.point.label_epsilon")
            assert found == pytest.approx(gaussian_epsilon(delta, mu), rel=1e-6)
            for name in ("delta", "width"):
                page.focus(f"#{name}")
                page.keyboard.press("ArrowRight")
            opened.wait("shown")
        page.select_option("#privacy", "epsilon")
        epsilons = page.evaluate("last.curves.curves.map((c) => c.epsilon)")
        assert [len(each) for each in epsilons] == [3] * 4
