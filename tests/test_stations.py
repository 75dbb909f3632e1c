"""How many files of the package a fit passes: what a reader must know to follow it."""

import json
import subprocess
import sys

import pytest

#: Counts files in a new process, where nothing was computed before and every module is imported.
COUNT = """
import functools, gc, importlib, json, os, pkgutil, sys, warnings
import numpy as np
import privasso as pv

root = os.path.dirname(pv.__file__)
for module in pkgutil.walk_packages([root], "privasso."):
    if "__main__" not in module.name:
        importlib.import_module(module.name)
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)


def table(rows, columns):
    X = rng.uniform(-1.0, 1.0, (rows, columns))
    return X, np.clip(X[:, 0] + 0.1 * rng.standard_normal(rows), -2.0, 2.0)


bounds = {"y_bounds": (-2.0, 2.0)}
records = pv.RecordDP(1.0, 1e-6, bounds=(-1.0, 1.0), **bounds)
labels = pv.LabelDP(1.0, 1e-6, **bounds)
fits = {
    "record": (pv.PrivateLasso(privacy=records), table(300, 6)),
    "label": (pv.PrivateLasso(privacy=labels), table(300, 6)),
    "screened label": (pv.PrivateLasso(privacy=labels, screen=3), table(120, 300)),
}
passed = {}
for name, (fit, data) in fits.items():
    fit.fit(*data)  # kernels are compiled now
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper):
            if one.__module__.startswith("privasso."):
                one.cache_clear()
    found = passed[name] = set()
    sys.setprofile(
        lambda frame, event, _: found.add(frame.f_code.co_filename) if event == "call" else None
    )
    fit.fit(*data)
    sys.setprofile(None)
print(json.dumps({
    name: sorted(os.path.relpath(file, root) for file in found if file.startswith(root + os.sep))
    for name, found in passed.items()
}))
"""
#: At most so many files; a change that adds one says why it earns its place.
MOST = {"record": 42, "label": 64, "screened label": 78}
#: Rooms of the stations that CONTRIBUTING walks through.
WALKED = {
    "record": "estimator fit planning privacy programs queries blocks solvers",
    "screened label": "estimator fit planning accounting programs queries solvers",
    "label": "estimator fit operators noise planning programs queries problem solvers",
}


pytestmark = pytest.mark.timeout(600)  # kernels may have to be compiled


@pytest.fixture(scope="module")
def passed():
    done = subprocess.run([sys.executable, "-c", COUNT], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", MOST)
def test_a_fit_passes_no_more_files(passed, name):
    found = passed[name]
    assert len(found) <= MOST[name], found


@pytest.mark.parametrize("name", WALKED)
def test_a_walk_names_the_rooms_that_are_passed(passed, name):
    assert set(WALKED[name].split()) <= {file.partition("/")[0] for file in passed[name]}
