"""Files of published sources: their names, documents with the line of each key, and ids of their claims."""

from benchbook.core.util import paths, yaml_file
from benchbook.core.util.errors import InputErrors, did_you_mean


def read_source(name: str) -> yaml_file.YamlDocument:
    """`data/published/NAME/source.yaml` parsed, with the line of each key."""
    file = paths.source_paths(name).published / "source.yaml"
    if not file.is_file():
        raise InputErrors([f"data/published: {name}: no such source; {did_you_mean(name, source_names())}"])
    return yaml_file.read_mapping(file, f"data/published/{name}/source.yaml")


def source_names() -> list[str]:
    """Names of all sources, sorted."""
    return sorted(file.parent.name for file in paths.find_root().glob("data/published/*/source.yaml"))


def claim_ids(*sources: str) -> list[str]:
    """Every claim of some sources (of all if none is named) as `source/claim`, sorted."""
    claims = {name: read_source(name).data.get("claims") or {} for name in sources or source_names()}
    return sorted(f"{name}/{claim}" for name, ids in claims.items() for claim in ids)
