"""Each kind of site says what of an arm it makes; what it does not make is refused in one sentence."""

from benchbook.core.study import registry
from benchbook.core.study.study_arm import Arm
from tests.goldens import assert_golden_case

# What of an arm affects no run, or is always there.
APART = {"access", "cpu", "illustrates", "name", "plays", "stands_in_for"}


def test_every_kind_of_site_has_its_line_and_every_key_of_an_arm_is_made_somewhere():
    assert set(registry.MAKES) == set(registry.SITES) and registry.LEAVES_OUT in registry.SITES
    made = set().union(*registry.MAKES.values())
    ways = {f"access: {name}" for name in registry.WAYS}
    assert made == (set(Arm.model_fields) - APART) | ways | {"cpu.cores", "cpu.quota"}


def test_hosts_leave_an_arm_out_for_what_is_not_of_one_kind_alone():
    asked = ({"network": "pod"}, {"access": "socket"}, {"cpu": {"proxy": {"quota": 1.0}}})
    network, socket, quota = (Arm.model_validate(one) for one in asked)
    ((_, sentence),) = registry.find_refusals("ssh", quota)
    assert sentence == "cpu.proxy.quota: not supported with site.kind: ssh; write cores"
    assert list(registry.find_mistakes("ssh", {"a": network})) == []
    assert list(registry.find_mistakes("existing", {"a": network})) != []
    (told,) = registry.find_mistakes("ssh", {"a": socket})
    assert_golden_case("refused_files.txt", "arm: a socket on hosts", told)
