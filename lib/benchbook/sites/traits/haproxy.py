"""What HAProxy says of itself."""

from __future__ import annotations

from benchbook.core import traits

# The words of its settings that a study may give, each with the section it stands in.
WORDS = {
    **{"maxconn": "global", "nbthread": "global", "cpu-map": "global", "tune.bufsize": "global"},
    **dict.fromkeys(
        ("retries", "balance", "timeout connect", "timeout client", "timeout server"), "defaults"
    ),
}

TRAITS = traits.Proxy(
    name="haproxy",
    product="HAProxy",
    code="benchbook.sites.proxies.haproxy:HAProxy",
    pod="benchbook.sites.kube.proxy:HAProxy",
    programs=("haproxy",),
    version_by=("-v",),
    packages={"apt-get": "haproxy"},
    account="haproxy",
    is_basic=True,
    sites=frozenset({"kubernetes", "local", "ssh"}),
    driver=None,
    relays_tls=True,
    refused=traits.only(*WORDS),
    spreads=True,
    is_balancer=True,
)
