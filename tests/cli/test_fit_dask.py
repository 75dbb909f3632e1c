"""`privasso fit --engine dask`: nobody else reaches the data."""

import contextlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privasso.cli import main

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

DP = (
    "--target y --record-dp --epsilon 1 --delta 1e-6 --y-bounds 0 1 --bounds bounds.csv --seed 0 "
    "--engine dask"
)
#: A fit that waits in its first pass over the data until its input ends.
WAITING = """
import sys
from privasso.blocks import RowBlocks
summed = RowBlocks.sum
def sum(self, task, state):
    RowBlocks.sum = summed
    print("reading", flush=True)
    sys.stdin.read()
    return summed(self, task, state)
RowBlocks.sum = sum
from privasso.cli import main
sys.exit(main(sys.argv[1:]))
"""
#: Tries to run code as the owner of a scheduler; as another user, where this one may become one.
ATTACK = """
import os, sys
import distributed.comm, distributed.comm.tcp
from distributed import Client
if os.geteuid() == 0:
    os.setuid(65534)
def taken():
    return "taken"
try:
    with Client(sys.argv[1], timeout="3s", set_as_default=False) as client:
        print(client.run_on_scheduler(taken), flush=True)
except Exception:
    print("refused")
os._exit(0)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for k in range(3):
        x = rng.random(300)
        pq.write_table(pa.table({"x": x, "y": 0.5 * x + 0.1}), f"part-{k}.parquet")
    Path("bounds.csv").write_text("name,low,high\nx,0,1\n")
    return tmp_path


def listening(parent):
    """Ports on which a process and its children listen, for IPv4 and IPv6."""
    family, inodes = {str(parent)}, set()
    stats = [Path(f"/proc/{entry}/stat") for entry in os.listdir("/proc") if entry.isdigit()]
    for _ in range(4):
        for stat in stats:
            try:
                if stat.read_text().rsplit(")", 1)[1].split()[1] in family:
                    family.add(stat.parent.name)
            except OSError:
                continue
    for process in family:
        for handle in Path(f"/proc/{process}/fd").iterdir():
            try:
                inodes.add(os.readlink(handle))
            except OSError:
                continue
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    found = [line for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in inodes]
    return [int(line[1].rpartition(":")[2], 16) for line in found]


def attacked(addresses):
    """What somebody else is told who tries to run code at each of these addresses."""
    words, told = [sys.executable, "-c", ATTACK], []
    for address in addresses:
        with contextlib.suppress(subprocess.TimeoutExpired):  # a port of something else
            done = subprocess.run(
                [*words, address], capture_output=True, text=True, check=True, cwd="/", timeout=20
            )
            told.append(done.stdout.strip())
    return told


@pytest.mark.skipif(sys.platform != "linux", reason="ports are read from /proc")
def test_no_other_user_runs_code_in_a_fit(folder):
    words = ["fit", "part-*.parquet", *shlex.split(f"{DP} --out model.json")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", WAITING, *words], **pipes) as run:
        assert run.stdout is not None
        assert run.stdin is not None
        assert run.stdout.readline() == "reading\n"
        ports = listening(run.pid)
        told = attacked(f"tcp://127.0.0.1:{port}" for port in ports)
        run.stdin.close()
        run.stdout.read()
    assert run.returncode == 0
    assert "taken" not in told
    assert ports == []
    assert json.loads(Path("model.json").read_text())["format"] == "privasso-model"


def test_threads_of_dask_give_the_same_model(folder):
    plain = DP.replace("--engine dask", "--engine local")
    for name, words in (("dask", DP), ("local", plain)):
        assert main(["fit", "part-*.parquet", *shlex.split(f"{words} --out {name}.json")]) == 0
    assert Path("dask.json").read_text() == Path("local.json").read_text()


#: A cluster whose certificates are in the folder; it ends with its input.
CLUSTER = """
import sys, dask
from distributed import LocalCluster
from distributed.security import Security
files = {"tls_ca_file": "ca.pem"}
files |= {f"tls_{who}_{what}": f"{what}.pem" for who in ("scheduler", "worker", "client")
          for what in ("cert", "key")}
if __name__ == "__main__":
    with dask.config.set({"distributed.worker.memory.spill": False}):
        with LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, protocol=sys.argv[1],
            host="127.0.0.1", dashboard_address=None, memory_limit=None,
            security=Security(require_encryption=True, **files) if sys.argv[1] == "tls" else None,
        ) as cluster:
            print(cluster.scheduler_address, flush=True)
            sys.stdin.read()
"""


def certificates():
    """Make a key and a certificate that is its own authority."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=test", "-keyout", "key.pem", "-out", "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    Path("ca.pem").write_text(Path("cert.pem").read_text())


@pytest.mark.slow
def test_a_cluster_with_certificates(folder, capsys):
    """It serves whoever has them, and nobody else."""
    import dask

    certificates()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    fit = ["fit", "part-*.parquet", *shlex.split(DP)]
    with subprocess.Popen([sys.executable, "-c", CLUSTER, "tls"], **pipes) as cluster:
        assert cluster.stdout is not None
        assert cluster.stdin is not None
        address = cluster.stdout.readline().strip()
        assert address.startswith("tls://127.0.0.1:")
        told = attacked([address, address.replace("tls", "tcp")])
        assert told == ["refused", "refused"]
        capsys.readouterr()
        assert main([*fit, "--scheduler", address, "--out", "none.json"]) == 2
        error = capsys.readouterr().err
        assert "no scheduler of Dask answers" in error
        assert "distributed.comm.tls" in error
        assert len(error.splitlines()) == 1
        tls = {"ca-file": "ca.pem", "client.cert": "cert.pem", "client.key": "key.pem"}
        tls = {f"distributed.comm.tls.{name}": file for name, file in tls.items()}
        with dask.config.set(tls):  # type: ignore[attr-defined]
            assert main([*fit, "--scheduler", address, "--out", "tls.json"]) == 0
        assert "warning" not in capsys.readouterr().err
        cluster.stdin.close()
        cluster.stdout.read()
    assert main([*fit, "--out", "threads.json"]) == 0
    assert Path("tls.json").read_text() == Path("threads.json").read_text()


@pytest.mark.filterwarnings("default:.*is not encrypted")
def test_a_cluster_without_certificates_is_warned_about(folder, capsys):
    words = ["fit", "part-*.parquet", *shlex.split(DP), "--out", "model.json"]
    assert main([*words, "--scheduler", "tcp://127.0.0.1"]) == 2
    error = capsys.readouterr().err
    assert "tcp://127.0.0.1 is not encrypted" in error
    assert "no scheduler of Dask answers" in error
