"""Labels in memory never reach a disk, where workers put what they have no room for."""

from pathlib import Path

import numpy as np
import pytest

from privasso.blocks import of_dask

#: Bytes that no file holds by chance.
LABEL = 0.7310585786300049


def on_disk(chunks, folder):
    """How many files of the workers hold labels, and covariates, while a task runs."""
    files = [file.read_bytes() for file in Path(folder).rglob("*") if file.is_file()]
    found = {"rows": 0, "labels": 0, "covariates": 0}
    for X, y in chunks:
        found["rows"] += len(y)
        for name, values in (("labels", y), ("covariates", X)):
            found[name] += sum(values[:3].tobytes() in content for content in files)
    return {name: np.array([count]) for name, count in found.items()}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_labels_in_memory_never_spill(tmp_path):
    """The workers have room for nothing, so that all that they hold goes to disk."""
    distributed = pytest.importorskip("distributed")
    import dask
    import dask.array as da

    no_room = {f"distributed.worker.memory.{name}": 1e-9 for name in ("target", "spill")}
    with (
        dask.config.set({**no_room, "distributed.worker.memory.spill-compression": None}),  # type: ignore[attr-defined]
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",
            memory_limit="2GB",
            local_directory=tmp_path,
        ) as cluster,
        distributed.Client(cluster),
    ):
        X = da.from_array(np.full((60, 4), np.pi), chunks=(20, 4))  # type: ignore[arg-type]
        found = of_dask(X, np.full(60, LABEL)).engine.sum(on_disk, str(tmp_path), lambda rows: None)
    assert found["rows"] == 60
    assert found["covariates"] > 0  # so that what spills is seen
    assert found["labels"] == 0
