"""PostgreSQL in a pod: what is refused, and a real one in a real cluster."""

import os
from pathlib import Path
from typing import Any

import pytest

from benchbook.core.study.study import StudySpec
from benchbook.measure import dataset
from benchbook.measure.data_plan import plan_data
from benchbook.measure.statement_counters import open_session
from benchbook.sites.engines import postgresql as accounts
from benchbook.sites.kube.api import VARIABLES
from tests.goldens import assert_golden
from tests.sites import kubernetes_study
from tests.sites.kube.test_site import loaded, run_valid

IMAGE = os.environ.get("BENCHBOOK_TEST_POSTGRESQL_IMAGE")
SMALL = {"shared_buffers": "32MB", "max_wal_size": "256MB"}


def study(arms: Any = ("pod", "host", "service", "haproxy"), **settings: Any) -> StudySpec:
    images = {"images": {**kubernetes_study.IMAGES, "server": IMAGE}} if IMAGE else None
    return kubernetes_study.make(arms, images, engine={"name": "postgresql", "settings": SMALL | settings})


def test_accounts_come_from_anywhere_by_password_and_the_administrator_over_the_socket_alone():
    assert_golden("kube/pg_hba.txt", accounts.render_access(["%", "192.0.2.7"], "root")["hba"])


@pytest.mark.slow
@pytest.mark.skipif(
    IMAGE is None or not any(os.environ.get(name) for name in VARIABLES),
    reason="no cluster, or BENCHBOOK_TEST_POSTGRESQL_IMAGE names no image with PostgreSQL",
)
def test_postgresql_in_a_pod_is_measured_valid_and_its_data_are_put_back(folder: Path, root: Path):
    spec = study()
    with loaded(folder, spec) as site:
        for arm in spec.arms:
            run_valid(site, arm, root / "raw")
        assert site.facts("pod")["engine"]["settings"]["shared_buffers"]["got"] == "4096 x 8kB"
        with open_session(site) as connection:
            connection.exec_driver_sql("DROP TABLE sbtest1")
        site.restore(plan_data(spec).label)
        with open_session(site) as connection:
            known = dataset.describe_data(connection, plan_data(spec))
            assert dataset.find_problems(known, plan_data(spec)) == []
