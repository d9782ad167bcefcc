"""The committed record comes out of its raw files as it stands, on this processor and on others."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from numpy._core import _multiarray_umath

from tests import off_by_one

ROOT = Path(__file__).parents[2]
# The smallest measured in turns, in whole runs, and in a cluster.
STUDIES = ("cluster-network", "lab-cpu", "cluster-qos")


def plainest() -> dict[str, str]:
    """Return what keeps numpy, Arrow and OpenBLAS from instructions that some processors lack."""
    has = _multiarray_umath.__cpu_features__
    extra = [name for name in _multiarray_umath.__cpu_dispatch__ if has.get(name)]
    blas = {"OPENBLAS_CORETYPE": "Prescott"} if platform.machine() == "x86_64" else {}
    return {"NPY_DISABLE_CPU_FEATURES": " ".join(extra), "ARROW_USER_SIMD_LEVEL": "NONE", **blas}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with the committed record and nothing made of it."""
    (tmp_path / "data" / "recorded").mkdir(parents=True)
    (tmp_path / "data" / "record").symlink_to(ROOT / "data" / "record")
    return tmp_path


def test_the_committed_record_is_what_its_raw_files_give(root: Path):
    assert off_by_one.remake(root, STUDIES) == {name: [] for name in STUDIES}


@pytest.mark.parametrize("processor", [{"BENCHBOOK_OFF": "1"}, plainest()], ids=["off by one bit", "no SIMD"])
def test_it_is_on_another_processor_too(processor: dict[str, str], root: Path):
    argv = [sys.executable, "-m", "tests.off_by_one", str(root), *STUDIES]
    done = subprocess.run(
        argv, cwd=ROOT, env={**os.environ, **processor}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {name: [] for name in STUDIES}


def test_a_processor_that_is_off_by_one_bit_is_off():
    """Or else the tests above would hold for nothing."""
    code = """
import math, numpy as np
from tests import off_by_one
was = [math.log(3.0), np.exp(np.arange(9.0)), 0.1 + 0.7, (0.1 + 0.7) / 2, np.log(np.array([[3.0]]))]
off_by_one.plant()
import pandas as pd
own = np.array([0.1, 0.7])
now = [math.log(3.0), np.exp(np.arange(9.0)), own.sum(), pd.Series(own).mean(), np.log(pd.DataFrame([[3.0]]))]
print([float(np.max(np.abs(np.subtract(a, b) / np.spacing(a)))) for a, b in zip(was, now, strict=True)])
print(int(np.sum(np.arange(4))), float(np.log(1)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    bits, kept = done.stdout.splitlines()
    assert json.loads(bits) == [1.0] * 5 and kept == "6 0.0", "whole numbers and nothing are what they were"
