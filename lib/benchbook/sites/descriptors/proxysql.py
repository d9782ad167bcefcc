"""Descriptor of ProxySQL."""

import re

from benchbook.core.study import descriptors

# Where it listens, what it asks servers unasked, and encryption are not a study's.
OURS = re.compile(r"interfaces$|monitor_|have_ss|ssl_|default_schema$|server_version$")


def find_refusal(settings: descriptors.Settings, _: int) -> str | None:
    """Reason to refuse settings: one beside its `mysql_variables`, or one that is ours; or None."""
    odd = sorted(name for name in settings if OURS.match(name) or not re.fullmatch(r"[a-z][a-z0-9_]*", name))
    return f"{odd[0]}: not a study's to set; use other names of its mysql_variables" if odd else None


TRAITS = descriptors.ProxyDescriptor(
    name="proxysql",
    product="ProxySQL",
    code="benchbook.sites.proxies.proxysql:ProxySQL",
    programs=("proxysql",),
    # It answers its administrator on the port after its own.
    ports=2,
    driver=descriptors.MYSQL,
    relays_tls=False,
    refused=find_refusal,
    spreads=True,
)
