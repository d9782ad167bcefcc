"""Commands about this machine: what it can do, and the servers that we start on it."""

from __future__ import annotations

import argparse
import os

from benchbook.commands import cluster
from benchbook.core import load, paths


def doctor_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook doctor` takes."""
    parser.add_argument("--noise", action="store_true", help="measure for half a minute how noisy it is now")


def doctor(arguments: argparse.Namespace) -> int:
    """Print each ability of this machine with its remedy; return an exit code."""
    from benchbook import sites
    from benchbook.sites.arms import obstacles

    found = [ability for kind in sites.rooms("doctor") for ability in kind.examine()]
    abilities = [*sorted(found, key=lambda ability: not ability.is_needed), *obstacles.examine()]
    for ability in abilities:
        print(f"{'yes' if ability.ok else 'no ':3}  {ability.name:22}  {ability.detail}")
        if not ability.ok and ability.remedy:
            print(f"{'':27}  → {ability.remedy}")
    if arguments.noise and all(ability.ok for ability in abilities if ability.is_needed):
        _noise()
    return 0


def _noise() -> None:
    from benchbook.commands import calibration

    print("noise: the same server is measured against itself, in turns, for half a minute …", flush=True)
    found = calibration.noise()
    percent = 100 * found["in_ten_minutes"]
    print(
        f"noise: an effect of about {percent:.1f} % can be seen in {calibration.MINUTES} minutes now "
        f"(point selects, 4 threads; load {found['load_1min']:.1f} on {os.cpu_count()} cores before)"
    )


def up_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook up` takes."""
    parser.add_argument("study", help="name of a file in studies/")


def up(arguments: argparse.Namespace) -> int:
    """Bring a study's arms up and hold them until Ctrl-C; return an exit code."""
    from benchbook import sites
    from benchbook.sites.lab import lab_folder

    study = load.study(arguments.study)
    with sites.open_site(study, lab_folder(paths.root(), arguments.study)) as site:
        for arm in study.arms:
            if why := site.missing(arm):
                print(f"{arm}: skipped: {why}")
                continue
            endpoint = site.up(arm)
            print(f"{arm}: {endpoint.place}, database {endpoint.database}, account in {endpoint.secret}")
        print("held until Ctrl-C", flush=True)
        site.hold()
    return 0


def down_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook down` takes."""
    parser.add_argument("--purge", action="store_true", help="remove the servers' data too")
    parser.add_argument(
        "--loaded", metavar="STUDY", help="only drop what this study loaded into servers that others run"
    )


def down(arguments: argparse.Namespace) -> int:
    """Stop everything we started on this machine, or take what was loaded away; return an exit code."""
    if arguments.loaded:
        return _remove(arguments.loaded)
    from benchbook.sites.arms import clean
    from benchbook.sites.lab import lab_root

    report = clean.down(lab_root(paths.root()), purge=arguments.purge)
    print("\n".join([str(report), *cluster.left(lab_root(paths.root()))]))
    return 0 if report.is_clean else 1


def _remove(name: str) -> int:
    from benchbook import sites
    from benchbook.sites.lab import lab_folder

    with sites.open_site(load.study(name), lab_folder(paths.root(), name)) as site:
        told = site.remove()
    print("\n".join(told) or f"{name}: its servers are no others'; `make down` stops them")
    return 0
