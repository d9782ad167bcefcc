"""A study of seconds with every kind of arm that a cluster can make, for the tests of the site."""

import os
from typing import Any

import pytest

from benchbook.core.study.study import StudySpec
from benchbook.sites.kube.api import VARIABLES
from tests import small

IN_A_CLUSTER = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not any(os.environ.get(name) for name in VARIABLES),
        reason=f"no cluster: neither {' nor '.join(VARIABLES)} is set",
    ),
]
# One with MariaDB, HAProxy, sysbench and python3 (`tools/images/rootfs.sh`).
IMAGE = os.environ.get("BENCHBOOK_TEST_IMAGE", "localhost/bb:1")
IMAGES = dict.fromkeys(("server", "client", "proxy"), IMAGE)
ARMS: dict[str, dict[str, Any]] = {
    "pod": {"network": "pod"},
    "host": {"network": "host"},
    "service": {"network": "pod", "access": "service"},
    "haproxy": {"network": "pod", "access": "haproxy"},
    "balancer": {"network": "pod", "access": "load_balancer"},
    "best-effort": {"network": "pod", "qos": "best_effort", "neighbour": {"processes": 1}},
    "guaranteed": {"network": "pod", "qos": "guaranteed", "neighbour": {"processes": 1}},
}


def make(arms: Any = tuple(ARMS), site: dict[str, Any] | None = None, **other: Any) -> StudySpec:
    """Return a study with some of these arms by name, or with others; `site` goes into `site.kubernetes`."""
    section = {"images": IMAGES, "server": {"cpu": 0.5, "memory_mib": 384}, "wait_s": 120}
    if "balancer" in arms:
        section["outside"] = "outside"
    whole: dict[str, Any] = {
        "site": {"kind": "kubernetes", "port": 34900, "kubernetes": section | (site or {})},
        "engine": {"settings": {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "16M"}},
        "arms": arms if isinstance(arms, dict) else {name: ARMS[name] for name in arms},
        "dataset": {"tables": 2, "table_size": 500},
        "workloads": {"oltp_point_select": {}},
        "plan": {"seed": 1, "blocks": 1, "discard_s": 1, "run_s": 2},
    }
    return small.study(**whole | other)
