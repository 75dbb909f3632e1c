"""A compiled pass over genotypes packed in two bits, four to a byte.

The two bits of an entry are 00, 10 and 11 for two, one and no copies of the counted allele, and 01
where the genotype is missing (the layout of PLINK's .bed files).

A vector over the rows is stored in four planes: plane k holds the entries 4i + k, so that the
entries of the four genotypes of byte i are at place i of each plane. Loops over bytes then use
vector registers. Planes are longer than the vector by up to three entries, which are zero.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz"}
#: Bytes of a column that are read at a time: with the planes they need 128 KB of cache.
_STRIP = 4096
#: Columns that are read strip by strip before the next ones: they are close to one another in
#: the file.
_GROUP = 64
#: What is summed: copies of the allele, one for a missing genotype; people with two; or missing.
COPIES, TWO, GONE = 0, 1, 2


@njit(nogil=True, cache=True, fastmath=_FAST)
def _dot(column, kind, a, b, c, d):  # pragma: no cover
    """The sum of the vector times what the kind says of each genotype."""
    s = 0.0
    t = 0.0
    u = 0.0
    v = 0.0
    for i in range(column.size):
        x = np.int32(column[i]) ^ 255
        low, high = x & 0x55, (x >> 1) & 0x55
        if kind == COPIES:
            x = low + high
        elif kind == TWO:
            x = low & high
        else:
            x = high & ~low
        s += np.float64(x & 3) * a[i]
        t += np.float64((x >> 2) & 3) * b[i]
        u += np.float64((x >> 4) & 3) * c[i]
        v += np.float64(x >> 6) * d[i]
    return s + t + u + v


@njit(nogil=True, cache=True)
def dots(packed, index, lo, hi, kind, planes, out):  # pragma: no cover
    """``out[k]`` = the sum for column index[k]; for k from lo to hi."""
    n_bytes = packed.shape[1]
    out[lo:hi] = 0.0
    for first in range(lo, hi, _GROUP):
        last = min(hi, first + _GROUP)
        for start in range(0, n_bytes, _STRIP):
            stop = min(n_bytes, start + _STRIP)
            a, b = planes[0, start:stop], planes[1, start:stop]
            c, d = planes[2, start:stop], planes[3, start:stop]
            for k in range(first, last):
                out[k] += _dot(packed[index[k], start:stop], kind, a, b, c, d)
