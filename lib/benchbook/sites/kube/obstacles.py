"""Why a cluster can't make an arm, by the study alone: nothing is asked of a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from benchbook.core.study import Study
from benchbook.sites.kube import engines
from benchbook.sites.kube.layout import Chain, asked


def of(study: Study, chain: Chain) -> Iterator[str]:
    """Yield why an arm's parts can't be made in any cluster."""
    if asked(study).tidb is None:
        if study.engine.name == "tidb" and (old := engines.too_old(study.engine)):
            yield old
        return
    if study.engine.name != "tidb":
        yield "site.kubernetes.tidb goes with engine.name: tidb"
    if chain.others:
        yield f"servers: {len(chain.servers)}: a TiDB cluster has as many as site.kubernetes.tidb says"
    if chain.proxy is not None:
        yield "a TiDB cluster is reached by direct, service or load_balancer"
