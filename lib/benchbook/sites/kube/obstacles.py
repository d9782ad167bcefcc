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
        return
    if OPERATED not in traits.engine(study.engine.name).clusters_by:
        fit = ", ".join(one.name for one in traits.engines().values() if OPERATED in one.clusters_by)
        yield f"site.{OPERATED} goes with engine.name: {fit}"
    if chain.others:
        yield f"servers: {len(chain.servers)}: a TiDB cluster has as many as site.{OPERATED} says"
    if chain.proxy is not None:
        yield "a TiDB cluster is reached by direct, service or load_balancer"
