"""Why a cluster can't make an arm, by the study alone: nothing is asked of a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from benchbook.core import traits
from benchbook.core.study import Study
from benchbook.sites.kube.layout import Chain, asked

OPERATED = "kubernetes.tidb"


def of(study: Study, chain: Chain) -> Iterator[str]:
    """Yield why an arm's parts can't be made in any cluster."""
    if asked(study).tidb is None:
        yield from _open_at_first(study, chain)
        return
    if OPERATED not in traits.engine(study.engine.name).clusters_by:
        fit = ", ".join(one.name for one in traits.engines().values() if OPERATED in one.clusters_by)
        yield f"site.{OPERATED} goes with engine.name: {fit}"
    if chain.others:
        yield f"servers: {len(chain.servers)}: a TiDB cluster has as many as site.{OPERATED} says"
    if chain.proxy is not None:
        yield "a TiDB cluster is reached by direct, service or load_balancer"


def _open_at_first(study: Study, chain: Chain) -> Iterator[str]:
    """Yield why a server would be open to all of a cluster's pods for a moment."""
    own = chain.arm.engine
    of = traits.engine((own and own.name) or study.engine.name)
    version = (own and own.version) or study.engine.version
    if of.closed_since is not None and version is not None and _numbers(version) < _numbers(of.closed_since):
        yield (
            f"engine.version: {version}: before {of.closed_since} {of.product} lets anybody in before it has "
            f"accounts; write {of.closed_since} or a later one"
        )


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")[:2] if part.isdigit()]
