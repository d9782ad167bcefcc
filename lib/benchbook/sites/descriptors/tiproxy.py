"""Descriptor of TiProxy."""

from benchbook.core.study import descriptors

TRAITS = descriptors.ProxyDescriptor(
    name="tiproxy",
    product="TiProxy",
    code="benchbook.sites.proxies.tiproxy:TiProxy",
    programs=("tiproxy",),
    # It answers questions about itself on the port after its own.
    ports=2,
    driver=descriptors.MYSQL,
    relays_tls=False,
    # Any item of its file: it refuses those it does not know.
    refused=lambda *_: None,
    spreads=True,
    captures=True,
)
