"""The page of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privasso.accounting import Loss
from privasso.attacks._evidence import FALSE_POSITIVES
from privasso.figures import BLUE, GREEN, GREY, ORANGE, PINK, SKY, Figure, logarithmic, panels
from privasso.page import Page

if TYPE_CHECKING:
    from privasso.attacks._result import Audit

FloatArray = NDArray[np.float64]

_COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY)
_LOWEST = 1e-3
#: False positives from which on a curve is drawn.
_FEWEST = 5
#: ε over which the claim is minimised for the line that no attack may cross.
_EPSILONS = np.linspace(0.0, 15.0, 301)
_GREY = (
    " Grey: what the claim rules out. A curve may enter it by chance; the table below says whether "
    "chance can explain it."
)


def audit_page(audit: Audit, again: str) -> Page:
    """Build the page: verdict, what was attacked, curves, numbers, and how to repeat it."""
    page = Page("Audit of a private fit", "audit")
    kind = "warning" if audit.passed is False else "lead"
    page.paragraph(audit.verdict, kind=kind)
    page.paragraph(
        "This page says more about the data than the fit that it is about. Keep it with the data."
    )
    page.heading("What was attacked")
    rows, columns = audit.shape
    page.paragraph(
        f"A fit of {rows} rows and {columns} columns, run {audit.releases} times on each of the "
        f"data sets that are compared. {audit.knowledge}"
    )
    if audit.confirming:
        page.paragraph(
            "The attack that came closest to refuting the claim was repeated with "
            f"{audit.confirming} new releases from each of its two data sets."
        )
    page.subheading("What the fit claims")
    page.paragraph(audit.guarantee.claim)
    page.heading("What the attacker learns")
    page.figure(
        _curves(audit),
        "True-positive rate against false-positive rate of each attack."
        + ("" if audit.guarantee.loss is None else _GREY),
        description="Receiver operating characteristics of the attacks, on logarithmic axes.",
    )
    _numbers(page, audit)
    page.heading("How to read this")
    page.items(_reading(audit))
    if again:
        page.heading("How to repeat it")
        page.code(again)
    return page


def claimed_rates(claim: Loss, fpr: FloatArray) -> FloatArray:
    """Largest true-positive rate that a claim allows: min over ε of δ(ε) + e^ε·FPR, both orders."""
    deltas = np.array([claim.delta(epsilon) for epsilon in _EPSILONS.tolist()])
    growth = np.exp(_EPSILONS)
    above = np.min(deltas[:, None] + growth[:, None] * fpr, axis=0)
    # The other order: 1 − FPR ≤ e^ε(1 − TPR) + δ.
    beside = np.min(1.0 - (1.0 - fpr - deltas[:, None]) / growth[:, None], axis=0)
    return np.clip(np.minimum(above, beside), 0.0, 1.0)


def _curves(audit: Audit) -> Figure:
    fig, (axes,) = panels(6.4, 5.2)
    grid = np.geomspace(_LOWEST, 1.0, 200)
    axes.plot(grid, grid, color=GREY, linewidth=0.9, linestyle=":")
    axes.annotate("guessing", (0.3, 0.3), xytext=(6, -10), textcoords="offset points", color=GREY)
    claim = audit.guarantee.loss
    if claim is not None:
        allowed = claimed_rates(claim, grid)
        axes.plot(grid, allowed, color="black", linewidth=1.2)
        axes.fill_between(grid, allowed, 1.0, color="#dddddd", alpha=0.6, linewidth=0.0)
    for k, one in enumerate(audit.findings):
        colour = _COLOURS[k % len(_COLOURS)]
        false, true = one.evidence.curve()
        # With fewer false positives than these the rate is hardly known.
        keep = false >= max(_LOWEST, _FEWEST / one.evidence.out.size)
        axes.step(false[keep], true[keep], where="post", color=colour, label=one.name)
    logarithmic(axes)
    axes.set_xlim(_LOWEST, 1.0)
    axes.set_ylim(_LOWEST, 1.0)
    axes.set_xlabel("false-positive rate")
    axes.set_ylabel("true-positive rate")
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    return fig


def _numbers(page: Page, audit: Audit) -> None:
    titles = ["attacked", "AUC", "advantage"]
    titles += [f"true positives at {rate:.1%}" for rate in FALSE_POSITIVES]
    lines = []
    for one in audit.findings:
        rates = [one.evidence.true_positives(rate) for rate in FALSE_POSITIVES]
        area = f"{one.auc:.3f} ± {one.evidence.auc_error:.3f}"
        shown = [f"{rate:.1%} ({low:.1%} to {high:.1%})" for rate, low, high in rates]
        lines.append([one.name, area, f"{one.advantage:.3f}", *shown])
    page.table(titles, lines, numeric=titles[1:])
    if audit.guarantee.loss is None:
        return
    page.subheading("Lower limits of ε")
    titles = ["attacked", "δ", "claimed ε", "ε is at least", "share of the claim", "verdict"]
    lines = []
    for one in audit.findings:
        assert one.closest is not None
        x, bound = one.closest, max(one.closest.bound, 0.0)
        numbers = [f"{x.delta:.3g}", f"{x.epsilon:.3g}", f"{bound:.3g}", f"{bound / x.epsilon:.0%}"]
        lines.append([one.name, *numbers, "refuted" if one.refuted else "stands"])
    page.table(titles, lines, numeric=titles[1:5], classes={"refuted": "bad", "stands": "good"})


def _reading(audit: Audit) -> list[str]:
    texts = [
        "The AUC is the probability that a release with the record scores higher than one without "
        "it: 0.5 if nothing is learned. The advantage is the largest difference of the two rates "
        "that the attack is expected to have.",
        "The attack knows more than real attackers do. What it finds for the records attacked here "
        "need not be the most that could be found for any record.",
    ]
    if audit.guarantee.loss is None:
        return [*texts, "No claim is made for single records, so there is nothing to refute."]
    return [
        *texts,
        f"The lower limits of ε hold together with a probability of {1.0 - audit.level:.0%}. They "
        "are taken along the claimed profile δ(ε), where δ is at least 0.01: smaller ones could "
        "not be seen in so few releases.",
        "An audit can refute a claim. It cannot prove one; that is what the proof is for.",
    ]
