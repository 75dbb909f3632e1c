"""The result of an audit: a verdict in words, numbers, and a page."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privasso._files import write_whole
from privasso.accounting import Loss
from privasso.attacks._evidence import FALSE_POSITIVES, Evidence, Refuted
from privasso.figures import BLUE, GREEN, GREY, ORANGE, PINK, SKY, Figure, logarithmic, panels
from privasso.page import Page
from privasso.privacy import Guarantee

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Finding:
    """What the attack on one record, or one label, has shown.

    Attributes
    ----------
    name : str
        What was attacked, in words.
    evidence : Evidence
        Scores of all releases.
    closest : Refuted or None
        The point of the claim that the evidence comes closest to refuting; None without a claim.
    """

    name: str
    evidence: Evidence = field(repr=False)
    closest: Refuted | None

    def with_limit(self, other: Refuted) -> Finding:
        """The finding with a further limit of ε, if that comes closer to refuting the claim."""
        if self.closest is not None and self.closest.share >= other.share:
            return self
        return replace(self, closest=other)

    @property
    def auc(self) -> float:
        """Probability that a release with the record scores above one without it."""
        return self.evidence.auc

    @property
    def advantage(self) -> float:
        """True- minus false-positive rate at the threshold zero."""
        return self.evidence.advantage

    @property
    def refuted(self) -> bool:
        """Whether a claim was refuted."""
        return self.closest is not None and self.closest.share > 1.0

    def to_dict(self) -> dict[str, object]:
        """Numbers for machines."""
        closest = self.closest
        return {
            "name": self.name,
            "auc": self.auc,
            "auc_standard_error": self.evidence.auc_error,
            "advantage": self.advantage,
            "true_positive_rates": [
                {"false_positive_rate": rate, "rate": found, "low": low, "high": high}
                for rate in FALSE_POSITIVES
                for found, low, high in [self.evidence.true_positives(rate)]
            ],
            "closest": None
            if closest is None
            else {
                "epsilon": closest.epsilon,
                "delta": closest.delta,
                "epsilon_lower_limit": closest.bound if math.isfinite(closest.bound) else None,
                "refuted": self.refuted,
            },
        }


@dataclass(frozen=True, eq=False)
class Audit:
    """What attacks on a mechanism have shown; made by `audit`.

    Attributes
    ----------
    guarantee : Guarantee
        What the mechanism claims.
    findings : tuple of Finding
        One for each record or label that was attacked.
    knowledge : str
        What the attacker knows, and how releases are scored.
    releases : int
        Releases from each data set.
    level : float
        Probability with which a correct mechanism is said to break its claim, at most.
    shape : (int, int)
        Rows and columns of the data.
    confirming : int
        New releases from each data set that have tested the closest attack; zero if none have.

    Examples
    --------
    >>> import privasso as pv
    >>> X, y = np.random.default_rng(0).random((40, 2)), np.linspace(0.0, 1.0, 40)
    >>> found = pv.audit(pv.OnAverage(0.01), X, y, lam=0.1, records=[0], releases=20, rng=1)
    >>> found.passed is None, found.verdict.startswith("Nothing is claimed"), found.releases
    (True, True, 20)
    """

    guarantee: Guarantee
    findings: tuple[Finding, ...]
    knowledge: str
    releases: int
    level: float
    shape: tuple[int, int]
    confirming: int = 0

    @property
    def worst(self) -> Finding:
        """The finding closest to refuting the claim, or with the largest AUC without one."""
        if self.guarantee.loss is None:
            return max(self.findings, key=lambda one: one.auc)
        return max(self.findings, key=lambda one: one.closest.share if one.closest else -math.inf)

    @property
    def passed(self) -> bool | None:
        """Whether no claim was refuted; None where nothing is claimed for single records."""
        if self.guarantee.loss is None:
            return None
        return not any(one.refuted for one in self.findings)

    @property
    def verdict(self) -> str:
        """The result in a few sentences."""
        worst = self.worst
        if self.passed is None:
            mean = float(np.mean([one.auc for one in self.findings]))
            return (
                f"Nothing is claimed for single records. The best attack on the most exposed of "
                f"the {len(self.findings)} records has an AUC of {worst.auc:.3f}, and "
                f"{mean:.3f} on average (0.5: nothing is learned; 1: everything)."
            )
        closest = worst.closest
        assert closest is not None
        if not self.passed:
            return (
                f"The claim is refuted: at δ = {closest.delta:.3g} it states ε = "
                f"{closest.epsilon:.3g}, but ε is at least {closest.bound:.3g} for {worst.name}. "
                f"A correct mechanism would be refuted with probability {self.level:g} at most."
            )
        if not closest.bound > 0.0:
            exposed = max(self.findings, key=lambda one: one.auc)
            return (
                f"No claim was refuted: {self.releases} releases are too few to show any ε above "
                f"zero with certainty. The largest AUC is {exposed.auc:.3f} ± "
                f"{exposed.evidence.auc_error:.3f}, for {exposed.name} (0.5: nothing is learned; "
                "1: everything)."
            )
        return (
            f"No claim was refuted. The attacks come closest for {worst.name}: at δ = "
            f"{closest.delta:.3g} the claim is ε = {closest.epsilon:.3g}, and the attack shows "
            f"that ε is at least {closest.bound:.3g}, which is {closest.share:.0%} of it."
        )

    def __str__(self) -> str:
        rows, columns = self.shape
        lines = [self.verdict, "", f"{rows} rows, {columns} columns; {self.releases} releases."]
        for one in self.findings:
            area = f"{one.auc:.3f} ± {one.evidence.auc_error:.3f}"
            lines.append(f"- {one.name}: AUC {area}, advantage {one.advantage:.3f}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Everything for machines, without scores of single releases."""
        return {
            "format": "privasso-audit",
            "passed": self.passed,
            "verdict": self.verdict,
            "knowledge": self.knowledge,
            "n_rows": self.shape[0],
            "n_features": self.shape[1],
            "releases": self.releases,
            "confirming_releases": self.confirming,
            "level": self.level,
            "guarantee": self.guarantee.to_dict(),
            "findings": [one.to_dict() for one in self.findings],
        }

    def text(self, ending: str, again: str = "") -> str:
        """The numbers for the ending .json, and otherwise the page.

        `again` is the command that repeats the audit.
        """
        if ending.lower() == ".json":
            return json.dumps(self.to_dict(), ensure_ascii=False, indent=2) + "\n"
        return audit_page(self, again).html()

    def save(self, path: Path | str, again: str = "") -> None:
        """Write the page, or for a name that ends in .json the numbers, completely or not at all.

        An audit says more about the data than the release that it attacks: keep it with the data.
        """
        write_whole(path, self.text(Path(path).suffix, again))


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
