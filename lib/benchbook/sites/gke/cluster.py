"""A study's cluster on Google Kubernetes Engine: a script, kept in the lab, with values at its head."""

import json
import shlex
import subprocess
from pathlib import Path

from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_kubernetes import Gke
from benchbook.core.util.errors import InputErrors, SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.kube import placement

RECORD = "gke.sh"
NO_LAB = "0" * 32
SCRIPT = Path(__file__).with_name("cluster.sh")


def render_script(study: StudySpec, folder: Path) -> str:
    """Script of a study's cluster; `folder` is its lab, with a zero id if there is none yet."""
    section, here = _get_section(study), placement.get_section(study)
    token = str(labs.read_record(folder / "lab.json").get("token", NO_LAB))
    names, zones = placement.build_names("disks", token), section.zones
    place = [f"--location={zones[0] if len(zones) == 1 else section.region}"]
    if section.project is not None:
        place.insert(0, f"--project={section.project}")
    values = {
        "cluster": section.name,
        "id": labs.lab_id(token),
        "folder": str(folder / "run"),
        "at": " ".join(place),
        "zones": ",".join(zones),
        "version": f"--cluster-version={section.version}" if section.version is not None else "",
        "by_gke": _format_pairs(section.by_configuration),
        "by_hand": _format_pairs(section.by_hand),
        "open_files": str(section.open_files or ""),
        "ssd_options": section.ssd_options,
        "size_gib": str(here.storage.size_gib),
        "operator": here.tidb.operator_version if here.tidb is not None else "",
        "namespace": names.namespace,
        "labels": json.dumps(dict(names.labels)),
    }
    lines = [f"{name}={shlex.quote(value)}" for name, value in values.items()]
    lines.append("pools() {")
    for name, pool in section.pools.items():
        where = ",".join(pool.zones or zones)
        words = (name, pool.machine, pool.image, pool.nodes, where, pool.cpu_manager, pool.local_ssds)
        lines.append(f'  "$1" {" ".join(map(str, words))} {pool.ssd_interface}')
    lines.append("}")
    return SCRIPT.read_text(encoding="utf-8").replace("@STUDY@", "\n".join(lines))


def make_cluster(study: StudySpec, folder: Path) -> int:
    """Run a study's script, kept in its lab from before its first command on; exit code."""
    _get_section(study)
    labs.open_lab(folder)
    # What is half made must be found again.
    labs.write_private(folder / RECORD, render_script(study, folder))
    return _run_script(folder, "up")


def remove_cluster(folder: Path) -> int:
    """Remove the cluster that a lab made, once its name has been typed; exit code."""
    if not (folder / RECORD).is_file():
        return 0
    code = _run_script(folder, "down")
    if code == 0:
        (folder / RECORD).unlink()
    return code


def summarize_cluster(study: StudySpec) -> list[str]:
    """Lines for `plan`: the pools that would be made."""
    section = _get_section(study)
    lines = [f"cluster     {section.name} on GKE; `benchbook cluster` shows each command, but no price"]
    for name, pool in section.pools.items():
        zones = pool.zones or section.zones
        disks = f", local SSDs of each: {pool.local_ssds} ({pool.ssd_interface})" if pool.local_ssds else ""
        where = f"in {', '.join(zones)}{disks}"
        lines.append(f"  pool      {name}: {pool.nodes * len(zones)} × {pool.machine}, {pool.image}, {where}")
    return lines


def _run_script(folder: Path, act: str) -> int:
    try:
        return subprocess.run(["sh", str(folder / RECORD), act], check=False).returncode
    except OSError as error:
        raise SiteError(f"sh: {error.strerror}") from None


def _get_section(study: StudySpec) -> Gke:
    section = placement.get_section(study).gke
    if section is None:
        raise InputErrors(["site.kubernetes.gke: missing; describe the cluster, or use one that is there"])
    return section


def _format_pairs(settings: dict[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(settings.items()))
