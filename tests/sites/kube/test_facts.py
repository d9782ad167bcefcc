"""What a cluster says of its nodes, read as numbers and settings."""

import json

import pytest

from benchbook.sites.kube import facts


@pytest.mark.parametrize(("said", "cores"), [("2", 2.0), ("500m", 0.5), ("15890m", 15.89)])
def test_processor_quantities_are_read_in_cores(said: str, cores: float):
    assert facts.parse_cores(said) == cores


def test_the_kubelets_settings_are_those_that_change_what_a_pod_gets():
    said = json.dumps({"kubeletconfig": {"cpuManagerPolicy": "static", "maxPods": 110, "address": "0.0.0.0"}})
    assert facts.parse_kubelet(said) == {"cpuManagerPolicy": "static", "maxPods": 110}
    assert "not available" in facts.parse_kubelet(None)
