"""The study of the paper by Tanzawa and Sakata (2026). Nothing in the library depends on it.

`reproduce` goes through it in this order: `experiments` simulates, in runs that can be resumed;
`figures` makes tables, drawings and captions of the results; `claims` decides from the tables what
holds of the paper; and all of it is written to a folder with one page to read.
"""

from privasso.paper._reproduce import Reproduction, reproduce
from privasso.paper.figures import Settings

__all__ = ["Reproduction", "Settings", "reproduce"]
