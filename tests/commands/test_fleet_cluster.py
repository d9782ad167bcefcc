"""The Job of a fleet: a node for each session, one more attempt, and what a cluster's inventory adds."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchbook.commands import fleet, fleet_cluster
from benchbook.core.errors import InputErrors


def test_each_session_has_a_node_of_its_own_and_a_second_attempt(tmp_path: Path):
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "image: bench:1\n"
        "pod: {nodeSelector: {pool: c2}, tolerations: [{key: bench, operator: Exists}]}\n"
        "container: {securityContext: {privileged: true}}\n"
        "resources: {requests: {cpu: '4'}}\n"
    )
    made = fleet_cluster.job(fleet._cluster(file), "ab12", 20, "true")
    spec, pod = made["spec"], made["spec"]["template"]["spec"]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (20, 20, "Indexed")
    # One more attempt for each index, and no index takes the others along.
    assert (spec["backoffLimitPerIndex"], spec["maxFailedIndexes"], pod["restartPolicy"]) == (1, 20, "Never")
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert apart["labelSelector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert pod["nodeSelector"] == {"pool": "c2"}
    assert [one["key"] for one in pod["tolerations"]] == [
        "bench", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
    ]  # fmt: skip
    (container,) = pod["containers"]
    assert container["securityContext"] == {"privileged": True}
    assert container["resources"] == {"requests": {"cpu": "4"}} and container["image"] == "bench:1"


def test_a_key_that_no_cluster_has_is_refused_by_its_line(tmp_path: Path):
    file = tmp_path / "cluster.yaml"
    file.write_text("image: bench:1\nnamespaces: bench\n")
    with pytest.raises(InputErrors, match="namespace"):
        fleet._cluster(file)
