"""The result of an audit: a verdict in words, numbers, and a page."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from privasso._files import write_whole
from privasso.attacks._evidence import FALSE_POSITIVES, Evidence, Refuted
from privasso.privacy import Guarantee


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
    leaks : tuple of str
        Private numbers that were found in plain text, in words.
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
    leaks: tuple[str, ...] = ()
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
        if self.leaks:
            return False
        if self.guarantee.loss is None:
            return None
        return not any(one.refuted for one in self.findings)

    @property
    def verdict(self) -> str:
        """The result in a few sentences."""
        if self.leaks:
            return f"The claim is refuted. {' '.join(self.leaks)}"
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
            "leaks": list(self.leaks),
            "guarantee": self.guarantee.to_dict(),
            "findings": [one.to_dict() for one in self.findings],
        }

    def text(self, ending: str, again: str = "") -> str:
        """The numbers for the ending .json, and otherwise the page.

        `again` is the command that repeats the audit.
        """
        if ending.lower() == ".json":
            return json.dumps(self.to_dict(), ensure_ascii=False, indent=2) + "\n"
        from privasso.attacks._page import audit_page

        return audit_page(self, again).html()

    def save(self, path: Path | str, again: str = "") -> None:
        """Write the page, or for a name that ends in .json the numbers, completely or not at all.

        An audit says more about the data than the release that it attacks: keep it with the data.
        """
        write_whole(path, self.text(Path(path).suffix, again))
