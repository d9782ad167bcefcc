"""socat between client and server: a proxy of another package, in one module."""

import re

from benchbook.core.study import descriptors
from benchbook.sites.proxies.proxy import Proxy, ProxyPod

TRAITS = descriptors.ProxyDescriptor(
    name="socat",
    product="socat",
    code="tests.others.socat_proxy:Socat",
    pod="tests.others.socat_proxy:SocatInPod",
    sites=frozenset({"kubernetes", "local", "ssh"}),
    programs=("socat",),
    version_by=("-V",),
    packages={"apt-get": "socat"},
    driver=None,
    relays_tls=True,
    has_children=True,
    refused=descriptors.allow_only(),
)


class Socat(Proxy):
    """One socat, which begins a process for each connection."""

    traits = TRAITS
    version_words = re.compile(r"socat version ([0-9.]+)")
    addresses_as = ("TCP-LISTEN:{1},bind={0},fork,reuseaddr", "TCP:{}:{}")

    def _start(self) -> None:
        self._configure("")
        listen = f"TCP-LISTEN:{self.place.port},bind={self.place.address},fork,reuseaddr"
        self._begin([self.binary, listen, f"TCP:{self.servers[0]}"], self.holds_port)


class SocatInPod(ProxyPod):
    """The same in a pod, which is told where it leads by a script."""

    @classmethod
    def files(cls, port: int, server: str, behind: int, cores: float | None) -> dict[str, str]:
        return {"lead.sh": f"exec socat TCP-LISTEN:{port},fork,reuseaddr TCP:{server}:{behind}\n"}

    @classmethod
    def command(cls, folder: str) -> list[str]:
        return ["sh", f"{folder}/lead.sh"]
