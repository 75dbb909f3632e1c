"""The study of the paper by Tanzawa and Sakata (2026). Nothing in the library depends on it.

Each figure is a file, with what is simulated and predicted for it, how it is drawn and described,
and what it says about the claims of the paper. `reproduce` goes through it in this order: `_run`
simulates, in runs that can be resumed; the figures of `_study` make tables and drawings of the
results; its claims are decided from the tables; `_output` writes all of it with one page to read.
"""

from privasso.paper._claim import parted
from privasso.paper._figure import Settings
from privasso.paper._reproduce import Reproduction, reproduce

__all__ = ["Reproduction", "Settings", "parted", "reproduce"]
