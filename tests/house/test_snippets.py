"""What a page shows as a file is one: each study in it is planned as it stands."""

import re
from pathlib import Path

import pytest

from benchbook.commands import cli
from benchbook.core.util import paths, yaml_file
from tests.house import tree

PAGES = sorted([*tree.ROOT.glob("*.md"), *(tree.ROOT / "docs").glob("*.md")])
# The first key of what is no study: an inventory, a source, a file of GitHub's, a part of params.yaml.
OTHERS = {"gateways", "image", "title, language", "name, on", "sources"}


def snippets() -> dict[str, str]:
    """Return the YAML of all pages by page and place."""
    found = {}
    for page in PAGES:
        blocks = re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        found |= {f"{page.stem.lower()}-{number}": block for number, block in enumerate(blocks, 1)}
    return found


def keys(text: str) -> list[str]:
    return list(yaml_file.parse_mapping(text.encode(), "snippet").data)


def is_other(text: str) -> bool:
    return any(", ".join(keys(text)).startswith(one) for one in OTHERS)


# A page's inventory has a host a role, and its study of a cluster asks for three of most.
CLUSTER = "".join(
    f"  {role}-{number}: {{host: 192.0.2.{place}{number}, user: root, roles: [{role}]}}\n"
    for place, role in enumerate(("server", "pd", "tikv", "client", "control"), 2)
    for number in range(3)
)


STUDIES = {name: text for name, text in snippets().items() if not is_other(text)}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with what the pages tell to put beside it: scripts, inventories."""
    root = tmp_path / "clone"
    (root / "studies").mkdir(parents=True)
    for script in (root / "workloads" / "mine.lua", tmp_path / "sysbench-tpcc" / "tpcc.lua"):
        script.parent.mkdir()
        script.write_text("function event() con:query('SELECT 1') end\n")
    (root / "inventories").mkdir()
    inventory = next(text for text in snippets().values() if keys(text)[0] == "gateways")
    for name in ("fleet", "load"):
        (root / "inventories" / f"{name}.yaml").write_text(inventory + CLUSTER)
    (root / "params.yaml").write_bytes((tree.ROOT / "params.yaml").read_bytes())
    monkeypatch.setenv("BENCHBOOK_ROOT", str(root))
    return root


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_a_study_of_a_page_is_whole(name: str, root: Path, capsys: pytest.CaptureFixture[str]):
    (root / "studies" / f"{name}.yaml").write_text(STUDIES[name])
    assert paths.study_paths(name).file.is_file()
    code = cli.main(["plan", name])
    said = capsys.readouterr()
    assert code == 0, said.err
    assert "measuring   about" in said.out
