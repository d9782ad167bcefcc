"""What a cluster says of its nodes, read as numbers and settings."""

import json

from benchbook.sites.kube import facts


def test_the_kubelets_settings_are_those_that_change_what_a_pod_gets():
    said = json.dumps({"kubeletconfig": {"cpuManagerPolicy": "static", "maxPods": 110, "address": "0.0.0.0"}})
    assert facts.parse_kubelet(said) == {"cpuManagerPolicy": "static", "maxPods": 110}
    assert "not available" in facts.parse_kubelet(None)
