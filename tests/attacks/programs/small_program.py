"""Writes a label with noise: `small_program FAULT DATA OUT`; it needs the standard library only."""

import json
import sys
from pathlib import Path
from random import SystemRandom


def write(fault, data, out):
    label = float(Path(data).read_text().split()[1])
    scale = 0.1 if fault == "noise" else 10.0
    document: dict[str, object] = {"value": label + SystemRandom().gauss(0.0, scale)}
    if fault == "label":
        document["note"] = f"of {label!r}"
    Path(out).write_text(json.dumps(document))


if __name__ == "__main__":
    write(*sys.argv[1:])
