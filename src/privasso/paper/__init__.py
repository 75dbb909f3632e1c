"""The study of the paper by Tanzawa and Sakata (2026). Nothing in the library depends on it.

Each figure is a file, with what is simulated and predicted for it, how it is drawn and described,
and how claims of the paper are decided from its tables; `claims.toml` says what these are.
`reproduce` simulates, in runs that can be resumed (`_run`), makes tables and drawings of the
results, decides on the claims, and writes all of it with one page to read.
"""

from privasso.paper._claim import parted
from privasso.paper._figure import Settings
from privasso.paper._reproduce import Reproduction, reproduce

__all__ = ["Reproduction", "Settings", "parted", "reproduce"]
