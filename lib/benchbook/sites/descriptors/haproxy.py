"""Descriptor of HAProxy."""

from benchbook.core.study import descriptors

# The words of its settings that a study may give, each with the section it stands in.
WORDS = {
    **dict.fromkeys(("maxconn", "nbthread", "cpu-map", "tune.bufsize"), "global"),
    **dict.fromkeys(
        ("retries", "balance", "timeout connect", "timeout client", "timeout server"), "defaults"
    ),
}

# Connections that a limit leaves to sysbench.
FOR_SYSBENCH = 1024


def find_refusal(settings: descriptors.Settings, connections: int) -> str | None:
    """Reason to refuse settings: an odd word, or a limit that a load's connections reach; or None."""
    most, least = str(settings.get("maxconn", "")), connections + FOR_SYSBENCH
    if connections and most.isdigit() and int(most) < least:
        return f"maxconn: {most} are too few; write at least {least}"
    return descriptors.allow_only(*WORDS)(settings, connections)


TRAITS = descriptors.ProxyDescriptor(
    name="haproxy",
    product="HAProxy",
    code="benchbook.sites.proxies.haproxy:HAProxy",
    pod="benchbook.sites.proxies.haproxy:HAProxyPod",
    programs=("haproxy",),
    version_by=("-v",),
    packages={"apt-get": "haproxy"},
    account="haproxy",
    is_basic=True,
    sites=frozenset({"kubernetes", "local", "ssh"}),
    driver=None,
    relays_tls=True,
    refused=find_refusal,
    spreads=True,
    fails_over=True,
    is_balancer=True,
)
