"""HAProxy in a pod."""

from __future__ import annotations

from benchbook.sites.kube.proxy import Proxy
from benchbook.sites.proxies.haproxy import DEFAULTS

# Connections follow from the open files that a container is allowed, which may be a thousand million.
CONFIG = f"""global
    fd-hard-limit 65536
    {{threads}}
{DEFAULTS}
frontend client
    bind :{{port}}
    default_backend server

backend server
    server db {{server}}:{{behind}}
"""
FILE = "haproxy.cfg"


class HAProxy(Proxy):
    """One HAProxy, with a thread for each core that it may use."""

    @classmethod
    def files(cls, port: int, server: str, behind: int, cores: float | None) -> dict[str, str]:
        threads = f"nbthread {max(1, round(cores))}" if cores else "# one thread a core"
        return {FILE: CONFIG.format(threads=threads, port=port, server=server, behind=behind)}

    @classmethod
    def command(cls, folder: str) -> list[str]:
        return ["haproxy", "-db", "-f", f"{folder}/{FILE}"]
