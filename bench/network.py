"""A fit on Dask over a throttled network: two workers in network namespaces behind a bridge.

    sudo python -m bench.network --folder /somewhere/with/room [--rates 1000 100 20]

Each worker has its own network namespace (`ip netns`), whose link sends and receives at most so
many Mbit/s (`tc`). Only the sums travel: the workers read the files from the same disk. The time at
each rate is compared with that of the model: the time without a limit, plus the bytes that crossed
the busiest link over its rate.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.blocks import generate, warm_up
from bench.page import extend

BRIDGE, GATEWAY, PORT = "pvbridge", "10.77.0.1", 8799
WORKERS = 2


def run(words: str) -> str:
    """Run a command, which must succeed."""
    return subprocess.run(words.split(), capture_output=True, text=True, check=True).stdout


@contextmanager
def network() -> Iterator[list[str]]:
    """A bridge with a namespace for each worker; their names."""
    names = [f"pvworker{k}" for k in range(WORKERS)]
    with ExitStack() as undo:
        undo.callback(subprocess.run, ["ip", "link", "del", BRIDGE], check=False)
        run(f"ip link add {BRIDGE} type bridge")
        run(f"ip addr add {GATEWAY}/24 dev {BRIDGE}")
        run(f"ip link set {BRIDGE} up")
        for k, name in enumerate(names):
            run(f"ip netns add {name}")
            undo.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
            run(f"ip link add {link(k)} type veth peer name eth0 netns {name}")
            run(f"ip link set {link(k)} master {BRIDGE} up")
            run(f"ip -n {name} addr add {address(k)}/24 dev eth0")
            run(f"ip -n {name} link set eth0 up")
            run(f"ip -n {name} link set lo up")
        yield names


def link(k: int) -> str:
    """The end of the link of a worker at the bridge."""
    return f"pvlink{k}"


def address(k: int) -> str:
    """The address of a worker."""
    return f"10.77.0.{11 + k}"


def throttle(names: list[str], mbit: float | None) -> None:
    """Limit what each link carries, in each direction; None lifts the limit."""
    for k, name in enumerate(names):
        for prefix, device in (("tc", link(k)), (f"ip netns exec {name} tc", "eth0")):
            subprocess.run(
                [*prefix.split(), "qdisc", "del", "dev", device, "root"],
                capture_output=True,
                check=False,
            )
            if mbit is not None:
                run(
                    f"{prefix} qdisc add dev {device} root tbf rate {mbit}mbit burst 256kb "
                    "latency 400ms"
                )


def carried() -> list[int]:
    """Bytes that each link has carried so far, in the busier direction."""
    folder = Path("/sys/class/net")
    return [
        max(
            int((folder / link(k) / "statistics" / name).read_text())
            for name in ("rx_bytes", "tx_bytes")
        )
        for k in range(WORKERS)
    ]


@contextmanager
def cluster(names: list[str]) -> Iterator[str]:
    """A scheduler outside the namespaces and one worker in each; the address of the scheduler."""
    where = f"tcp://{GATEWAY}:{PORT}"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", GATEWAY]
    words = [[*command, "--port", str(PORT), "--no-dashboard"]]
    for k, name in enumerate(names):
        inside = ["ip", "netns", "exec", name, sys.executable, "-m", "distributed.cli.dask_worker"]
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", address(k)]
        words.append([*inside, where, *options])
    started: list[subprocess.Popen[bytes]] = []
    try:
        for each in words:
            started.append(
                subprocess.Popen(each, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            if len(started) == 1:
                _await_port()
        yield where
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def _await_port() -> None:
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex((GATEWAY, PORT)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError("the scheduler did not start")


def fit(paths: list[str], columns: int, client) -> tuple[float, int]:
    """Seconds of one fit, and the number of its passes."""
    import privasso as pv
    from privasso.blocks import on_dask, open_files

    passes: list[int] = []
    blocks = on_dask(open_files(paths, "y", jobs=1), client)
    shown = blocks.reporting_to(lambda progress: passes.append(progress.passes))
    privacy = pv.RecordDP(1.0, 1e-8, bounds=[(0.0, 1.0)] * columns, y_bounds=(0.0, 1.0))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same labels are fitted several times
        pv.PrivateLasso(privacy=privacy, random_state=0).fit(shown)
    return time.perf_counter() - start, max(passes) + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=131_072)
    parser.add_argument("--columns", type=int, default=300)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--rates", nargs="*", type=float, default=[1000.0, 100.0, 20.0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="renew docs/data/scale-network.csv")
    asked = parser.parse_args()
    from distributed import Client

    folder = asked.folder / "privasso-bench-network"
    try:
        paths = generate(folder, asked.rows, asked.columns, asked.files)
        lines: list[dict[str, str]] = []
        with network() as names, cluster(names) as where, Client(where) as client:
            client.wait_for_workers(WORKERS)
            client.run(warm_up, asked.columns)
            warm_up(asked.columns)
            fit(paths, asked.columns, client)
            free = 0.0
            for rate in (None, *asked.rates):
                throttle(names, rate)
                best, sent, passes = float("inf"), 0, 0
                for _ in range(asked.repeats):
                    before = carried()
                    seconds, passes = fit(paths, asked.columns, client)
                    if seconds < best:
                        best = seconds
                        sent = max(b - a for a, b in zip(before, carried(), strict=True))
                free = best if rate is None else free
                model = free if rate is None else free + sent / (rate * 1e6 / 8)
                line = {
                    "link, Mbit/s": "no limit" if rate is None else f"{rate:g}",
                    "passes": str(passes),
                    "MB on the busiest link, each pass": f"{sent / passes / 1e6:.1f}",
                    "time": f"{best:.1f} s",
                    "model": f"{model:.1f} s",
                    "ratio": f"{best / model:.2f}",
                }
                print(line, flush=True)
                lines.append(line)
        if asked.write:
            size = f"--rows {asked.rows} --columns {asked.columns}"
            command = f"python -m bench.network --folder FOLDER {size} --write"
            extend("scale-network", lines, ["link, Mbit/s"], command)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
