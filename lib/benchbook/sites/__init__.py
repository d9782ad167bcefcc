"""Places where arms run: bring them up, collect their facts, take them down.

    with sites.open_site(study, lab) as site:
        endpoint = site.up("direct")

Sites, engines and ways of access are named in `core.study.registry`; each is one module here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from benchbook.core.study import registry
from benchbook.core.util import process_env
from benchbook.core.util.errors import LockHeld, SettingsDiffer, SiteError
from benchbook.sites.processes import supervise

if TYPE_CHECKING:
    from benchbook.core.study.study import StudySpec
    from benchbook.sites.contract import Site

__all__ = ["LockHeld", "SettingsDiffer", "SiteError", "kind", "load", "open_site", "rooms"]


def load(target: str) -> Any:
    """Object behind a registry line such as `benchbook.sites.local.site:LocalSite`."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def kind(study: "StudySpec") -> "type[Site]":
    """Class of a study's kind of site."""
    site_type: type[Site] = load(registry.SITES[study.site.kind])
    return site_type


def rooms(module: str) -> Iterator[ModuleType]:
    """Yield the modules of a name, such as `doctor` or `clean`, that kinds of site have in their rooms."""
    for target in registry.SITES.values():
        room = target.partition(":")[0].rpartition(".")[0]
        if find_spec(f"{room}.{module}") is not None:
            yield import_module(f"{room}.{module}")


@contextmanager
def open_site(study: "StudySpec", lab: Path) -> "Iterator[Site]":
    """Open the site of a study in a lab folder; on leaving, whatever the reason, all it started is stopped.

    Takes the machine's lock (LockHeld within a second if another holds it). In a stage's notebook the kernel
    is first tied to the stage, so that not even SIGKILL leaves a server behind.
    """
    supervise.die_with_parent()
    process_env.restrict_umask()
    process_env.drop_passwords()
    with kind(study)(study, lab) as site:
        yield site
