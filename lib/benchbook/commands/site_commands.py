"""Commands for places of arms: abilities of this machine, its servers, and paid clusters."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchbook.core.study import load
from benchbook.core.study.study import StudySpec
from benchbook.core.util import paths


def run_doctor(noise: bool) -> int:
    """Print each ability of this machine with its remedy; return an exit code."""
    from benchbook import sites
    from benchbook.sites.topology import feasibility

    results = [ability for kind in sites.rooms("doctor") for ability in kind.examine()]
    abilities = [*sorted(results, key=lambda ability: not ability.is_needed), *feasibility.examine_studies()]
    for ability in abilities:
        print(f"{'yes' if ability.ok else 'no ':3}  {ability.name:22}  {ability.detail}")
        if not ability.ok and ability.remedy:
            print(f"{'':27}  → {ability.remedy}")
    if noise and all(ability.ok for ability in abilities if ability.is_needed):
        from benchbook.commands import machine_noise

        print("noise: the same server is measured against itself, in turns, for half a minute …")
        load_1min, percent = os.getloadavg()[0], 100 * machine_noise.measure_noise()
        effect = f"an effect of about {percent:.1f} % can be seen in {machine_noise.MINUTES} minutes now"
        load_before = f"load {load_1min:.1f} on {os.cpu_count()} cores before"
        print(f"noise: {effect} (point selects, 4 threads; {load_before})")
    return 0


def bring_up(study: str) -> int:
    """Bring a study's arms up and hold them until Ctrl-C; return an exit code."""
    from benchbook import sites
    from benchbook.sites.workspace import lab_folder

    of = load.load_study(study)
    with sites.open_site(of, lab_folder(paths.find_root(), study)) as site:
        for arm in of.arms:
            if why := site.missing(arm):
                print(f"{arm}: skipped: {why}")
                continue
            endpoint = site.up(arm)
            print(f"{arm}: {endpoint.place}, database {endpoint.database}, account in {endpoint.secret}")
        print("held until Ctrl-C")
        site.hold()
    return 0


def take_down(purge: bool, loaded: str | None) -> int | str:
    """Stop everything we started on this machine, or remove loaded data; return an exit code."""
    from benchbook.sites.workspace import lab_folder, lab_root

    if loaded:
        from benchbook import sites

        with sites.open_site(load.load_study(loaded), lab_folder(paths.find_root(), loaded)) as site:
            messages = site.remove()
        return "\n".join(messages) or f"{loaded}: its servers are no others'; `make down` stops them"
    from benchbook.sites.topology import teardown

    if at_work := teardown.owners_at_work(lab_root(paths.find_root())):
        print("\n".join(["a command of this clone is at work:", *(f"  {command}" for command in at_work)]))
        if sys.stdin.isatty() and input("End it and its servers? [y/N] ").strip().lower() not in ("y", "yes"):
            return "nothing was stopped"
    report = teardown.tear_down(lab_root(paths.find_root()), purge=purge)
    print("\n".join([str(report), *clusters_left(lab_root(paths.find_root()))]))
    return 0 if report.is_clean else 1


def run_cluster(study: str, act: str) -> int | str:
    """Show the script of a study's cluster, or run it; return an exit code."""
    from benchbook.sites.gke import cluster as gke
    from benchbook.sites.workspace import lab_folder

    of, folder = load.load_study(study), lab_folder(paths.find_root(), study)
    if act == "show":
        return gke.render_script(of, folder)
    return gke.remove_cluster(folder) if act == "down" else gke.make_cluster(of, folder)


def cluster_summary(study: StudySpec) -> str:
    """Way to make a study's cluster, as `plan` shows it; empty if it names no cluster to make."""
    if study.site.kubernetes is None or study.site.kubernetes.gke is None:
        return ""
    from benchbook.sites.gke import cluster as gke

    return "\n".join(f"  {line}" for line in gke.summarize_cluster(study))


def clusters_left(lab_root: Path) -> list[str]:
    """Offer to remove every cluster that labs below a folder made; return those left, in words."""
    from benchbook.sites.gke import cluster as gke
    from benchbook.sites.topology import teardown

    return [
        f"the cluster of {folder.name} is still there and costs money: `benchbook cluster {folder.name} down`"
        for folder in teardown.find_labs(lab_root)
        if gke.remove_cluster(folder)
    ]
