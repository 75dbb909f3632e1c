"""Files that are damaged at random: bytes changed, cut, inserted, copied, set to extremes."""

import random

EXTREMES = [
    b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\0", b"\0\0\0\x80", b"\0\0\0\0\0\0\0\x7f",
    b'"', b"\n", b"\r", b",", b"\t", b"\xff", b"\xed\xa0\x80", b"1e999", b"-", b"9" * 40, b"nan",
    b"[", b"{", b"}", b":", b"null", b"true", b"\\ud800", b"\\u0000", b"1e-320", b"\x1b[31m",
]  # fmt: skip


def mutated(data, seed):
    rng = random.Random(seed)
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        if not out:
            break
        at, length = rng.randrange(len(out)), rng.choice([1, 1, 2, 4, 8, 64])
        match rng.randrange(7):
            case 0:
                out[at] = rng.randrange(256)
            case 1:
                out[at] ^= 1 << rng.randrange(8)
            case 2:
                del out[at : at + length]
            case 3:
                del out[at:]
            case 4:
                source = rng.randrange(len(out))
                out[at : at + length] = out[source : source + length]
            case 5:
                out[at:at] = rng.choice(EXTREMES)
            case 6:
                extreme = rng.choice(EXTREMES)
                out[at : at + len(extreme)] = extreme
    return bytes(out)
