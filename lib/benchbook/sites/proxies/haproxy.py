"""HAProxy as a plain TCP relay."""

import csv
import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchbook.core.util.errors import SiteError
from benchbook.sites.descriptors.haproxy import FOR_SYSBENCH, TRAITS, WORDS
from benchbook.sites.proxies.proxy import Proxy, ProxyPod

MAX_CONNECTIONS = 4096
SOCKET = "p.sock"
# Of what it says of itself, what can be set while it runs.
LIMITS = ("Maxconn", "Nbthread", "ConnRateLimit", "SessRateLimit", "SslRateLimit", "MaxZlibMemUsage_MB")

# What it is asked over its socket; the last gives one row of the backend, with how it balances.
INFO, SERVERS, BACKEND = "show info", "show servers state", "show stat server 2 -1"

# How connections are relayed, on every site.
DEFAULTS = """
defaults
    mode tcp
    balance leastconn
    timeout connect 10s
    timeout client 1h
    timeout server 1h
"""
# No health checks: each would be a connection in the server's counters that no client made.
CONFIG = f"""global
    maxconn {{maxconn}}
    nbthread {{threads}}
    stats socket {{socket}} mode 600 level admin
{DEFAULTS}
frontend client
    bind {{address}}:{{port}}
    maxconn {{maxconn}}
    default_backend server

backend server
{{servers}}
"""

# In a pod connections follow from the open files that a container is allowed, maybe a thousand million.

POD_CONFIG = f"""global
    fd-hard-limit 65536
    {{threads}}
{DEFAULTS}
frontend client
    bind :{{port}}
    default_backend server

backend server
    server db {{server}}:{{behind}}
"""


class HAProxy(Proxy):
    """One HAProxy."""

    traits = TRAITS
    config_name = "haproxy.cfg"
    leftovers = (SOCKET,)

    @property
    def has_probes(self) -> bool:  # type: ignore[override]  # of a class, as for all other proxies
        """True if it asks its servers for signs of life, as it must to fail over."""
        return self.has_standby

    def _start(self) -> None:
        self._configure(self.text())
        self._begin([self.binary, "-db", "-f", str(self.config)], self._is_answering)

    def text(self) -> str:
        """Its settings file: ours, with the arm's own settings in place of it."""
        text = CONFIG.format(
            maxconn=limit_connections(self.place.connections, self.machine.open_files),
            threads=self.threads,
            socket=self.machine.socket(f"{self.role}/{SOCKET}"),
            address=self.place.address,
            port=self.place.port,
            servers=server_lines(self.servers, self.has_standby),
        )
        for word, value in self.asked.settings.items():
            line = f"    {word} {value}"
            known_pattern = re.compile(rf"^    {re.escape(word)} .*$", re.MULTILINE)
            if known_pattern.search(text):
                text = known_pattern.sub(line, text)
            else:
                section = f"\n{WORDS[word]}\n"
                text = f"\n{text}".replace(section, f"{section}{line}\n", 1)[1:]
        return text

    def identity(self) -> dict[str, Any]:
        """Its marks, with what can be set over its socket: limits, and its servers' states and weights."""
        info, servers = parse_info(self._ask(INFO)), self._ask(SERVERS).splitlines()[2:]
        states = [" ".join(line.split()[3:9]) for line in servers if line.strip()]
        limits = {name: info[name] for name in LIMITS if name in info}
        return super().identity() | {"proxy_limits": limits, "proxy_servers": states}

    def facts(self) -> dict[str, Any]:
        info, facts = parse_info(self._ask(INFO)), super().facts()
        facts |= {"version": info["Version"]} | read_back(info, self._ask(BACKEND))
        if "cpu-map" in self.asked.settings:
            cores = facts["cores_of_threads"] = self.machine.affinity(self.running().pid)
            if self.machine.cores > 1 and all(len(each) >= self.threads for each in cores):
                word = f"arms.{self.arm}.proxy.settings.cpu-map: {self.asked.settings['cpu-map']}"
                remedy = f"its threads may use {cores}; write one such as auto:1/1-4 0-3"
                raise SiteError(f"{word}: HAProxy did not take it, {remedy}")
        return facts

    def _is_answering(self) -> bool:
        answer = parse_info(self.machine.ask(f"{self.role}/{SOCKET}", INFO))
        return int(answer["Pid"]) == self.running().pid and self.holds_port()

    def _ask(self, command: str) -> str:
        """The proxy's answer over its socket; SiteError if there is none."""
        try:
            return self.machine.ask(f"{self.role}/{SOCKET}", command)
        except OSError as error:
            raise SiteError(f"{self._named} does not answer: {error}; see {self.log}") from None


class HAProxyPod(ProxyPod):
    """One HAProxy in a pod, with a thread for each core that it may use."""

    @classmethod
    def files(cls, port: int, server: str, behind: int, cores: float | None) -> dict[str, str]:
        threads = f"nbthread {max(1, round(cores))}" if cores else "# one thread a core"
        text = POD_CONFIG.format(threads=threads, port=port, server=server, behind=behind)
        return {HAProxy.config_name: text}

    @classmethod
    def command(cls, folder: str) -> list[str]:
        return ["haproxy", "-db", "-f", f"{folder}/{HAProxy.config_name}"]


# Sessions of a server that is gone are ended at once, and new ones go to the next.
WATCHED = " check inter 200 fall 2 rise 2 on-marked-down shutdown-sessions"


def server_lines(servers: Sequence[str], has_standby: bool = False) -> str:
    """Lines of the backend that name its servers, each ADDRESS:PORT."""
    watched, backup = (WATCHED, " backup") if has_standby else ("", "")
    rest = (
        f"    server db{rank} {place}{watched}{backup}" for rank, place in enumerate(servers[1:], start=2)
    )
    return "\n".join([f"    server db {servers[0]}{watched}", *rest])


def limit_connections(connections: int, allowed: int) -> int:
    """Limit of a proxy's connections, with `connections` to bear beside sysbench's."""
    most = max(MAX_CONNECTIONS, connections + FOR_SYSBENCH)
    return most if allowed < 0 else min(most, (allowed - 200) // 2)


def parse_info(answer: str) -> dict[str, str]:
    """A proxy's answers to INFO by name."""
    return dict(line.split(": ", 1) for line in answer.splitlines() if ": " in line)


def read_back(info: Mapping[str, str], backend: str) -> dict[str, Any]:
    """Threads, connections and balance as the proxy has them, from its answers to INFO and BACKEND."""
    header, *rows = csv.reader(backend.removeprefix("# ").splitlines())
    (row,) = (item for item in rows if len(item) > 1 and item[1] == "BACKEND")
    counts = {"threads": int(info["Nbthread"]), "max_connections": int(info["Maxconn"])}
    return counts | {"balance": row[header.index("algo")]}
