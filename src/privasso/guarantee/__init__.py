"""What may be claimed about a fitted model, as a value that prints as sentences."""

from privasso.guarantee._guarantee import Guarantee
from privasso.guarantee._statements import average_case_guarantee, label_dp_guarantee

__all__ = ["Guarantee", "average_case_guarantee", "label_dp_guarantee"]
