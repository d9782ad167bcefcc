"""Engines and proxies must say what they are, are found where they are installed, and in no other table."""

import ast
import subprocess
import sys
from dataclasses import MISSING, fields, replace
from pathlib import Path

import pytest

from benchbook.core.study import descriptors, registry
from benchbook.core.util.errors import BenchbookError, InputErrors
from benchbook.sites.descriptors import haproxy
from benchbook.sites.engines import mysql, postgresql_dialect
from benchbook.sites.tidb import status
from tests import small
from tests.goldens import assert_golden_case
from tests.house import tree
from tests.installed import package

# Without these a study would be measured or checked less than it should be, so none has a default.
MUST_SAY = {
    descriptors.EngineDescriptor: {
        *("name", "product", "code", "programs", "sites", "driver", "reserved", "has_backends"),
        *("has_own_work", "leaves_gaps", "tells_settings", "must_limit_connections"),
        *("example", "meanings", "said_by", "text"),
    },
    descriptors.ProxyDescriptor: {"name", "product", "code", "programs", "driver", "relays_tls", "refused"},
}
# What any further name of an engine or proxy in our code stands for.
ELSEWHERE = {
    "core/study/study_sections.py": {"mariadb"},  # the engine of a study that names none
    # Examples for readers of the reference.
    "core/study/inventory.py": {"tiproxy"},
    "core/study/study_arm.py": {"haproxy"},
    # A cluster's part, its account, the folder of what is known of it.
    "commands/code_fingerprint.py": {"tidb"},
    "core/study/study_cluster.py": {"tidb"},
    "core/study/study_hosts.py": {"tidb"},
    "read/costs.py": {"tidb"},
    "read/rows.py": {"tidb"},
    "sites/hosts/cluster.py": {"tidb"},
    "sites/hosts/tiup.py": {"tidb"},
}
ROOMS = tuple(f"sites/{name}" for name in ("descriptors/", "engines/", "proxies/", "tidb/"))
ROOMS += ("sites/local/tidb_", "sites/kube/tidb_")


@pytest.mark.parametrize("kind", list(MUST_SAY))
def test_what_must_be_said_has_no_default(kind: type):
    without = {one.name for one in fields(kind) if one.default is one.default_factory is MISSING}
    assert without == MUST_SAY[kind]
    with pytest.raises(TypeError, match="missing"):
        kind(name="x", product="X", code="x:X")


def test_one_of_another_package_is_known_to_every_floor(tmp_path: Path):
    asked = {"engine": {"name": "small"}, "arms": {"direct": {}, "behind": {"access": "socat"}}}
    with package(tmp_path):
        assert small.study(**asked).arms["behind"].access == "socat"
        assert descriptors.product_name("percona") == "Percona Server"
        assert {"socat", "mysqld"} <= set(descriptors.list_programs())
        assert "socat" in registry.list_access()
    with pytest.raises(ValueError, match=r"unknown engine"):
        small.study(**asked)


@pytest.mark.parametrize(
    "place",
    ["tests.others.no_such", "benchbook.sites.descriptors.haproxy", "benchbook.sites.descriptors.mariadb"],
)
def test_one_that_can_not_be_had_is_named_and_not_left_out(tmp_path: Path, place: str):
    points = {"benchbook.engines": {"odd": f"{place}:TRAITS"}}
    with package(tmp_path, points), pytest.raises(BenchbookError) as refused:
        descriptors.load_engines()
    assert_golden_case("refused_descriptors.txt", f"in {place}", str(refused.value))


def test_the_way_of_access_says_which_proxy_is_needed():
    with pytest.raises(InputErrors) as refused:
        descriptors.find_engine("mariabd")
    assert_golden_case("refused_descriptors.txt", "an engine with a typing mistake", str(refused.value))
    for access in ("direct", "socket", "service"):
        assert descriptors.find_intermediary(access) is None
    for access in ("load_balancer", "haproxy"):
        assert descriptors.find_intermediary(access) is haproxy.TRAITS


def test_settings_that_are_not_named_are_refused_with_those_that_are():
    for names in (("one", "two"), ()):
        said = descriptors.allow_only(*names)({**dict.fromkeys(names, 1), "odd": 2})
        assert_golden_case("refused_descriptors.txt", f"of {len(names)} settings another", str(said))
    assert descriptors.allow_only("one")({"one": 1}) is None


def test_what_is_made_in_a_cluster_must_say_by_what():
    with pytest.raises(BenchbookError) as refused:
        replace(haproxy.TRAITS, pod=None)
    assert_golden_case("refused_descriptors.txt", "a proxy without its pod", str(refused.value))


def test_what_is_said_is_read_without_any_library_of_a_server():
    heavy = ("sqlalchemy", "pymysql", "psycopg", "pandas", "fabric")
    code = f"""
import sys
from benchbook.core.study import descriptors
assert len(descriptors.load_engines()) == 4 and len(descriptors.load_proxies()) == 4
print([name for name in {heavy} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def named(path: Path) -> set[str]:
    """Return the names of engines and proxies that a module has in quotes, but in texts."""
    names = {*descriptors.load_engines(), *descriptors.load_proxies()} - {"mysql"}
    found = ast.walk(tree.parsed(tree.text(path)))
    return {node.value for node in found if isinstance(node, ast.Constant) and node.value in names}


def test_a_run_may_lack_the_counters_that_its_engine_says_to_lack():
    assert descriptors.find_engine("mysql").uncounted == set(mysql.ABSENT)
    assert descriptors.find_engine("postgresql").uncounted == set(postgresql_dialect.ABSENT)
    assert descriptors.find_engine("tidb").uncounted == {*status.ABSENT, *status.UNCOUNTED}
    assert not descriptors.find_engine("mariadb").uncounted


def test_no_other_room_has_the_name_of_an_engine_or_proxy():
    """`mysql` is sysbench's driver, a protocol and an account too, and is not looked for."""
    found: dict[str, set[str]] = {}
    for path in tree.modules():
        place = path.relative_to(tree.PACKAGE).as_posix()
        if not place.startswith(ROOMS) and (wrong := named(path)):
            found[place] = wrong
    assert found == ELSEWHERE
