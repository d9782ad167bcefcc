"""A lab's own network: a bridge, namespaces behind virtual cables, virtual addresses, and zones of a cluster.

Everything carries the lab's id, the first eight digits of its token, so that the next process can find and
remove it: the bridge `bb-ID`, the namespaces `bb-ID-N`, their cables `bv-ID-N` on this side, and rules with
the comment `benchbook ID NAME`. A namespace has no way out: it knows its own subnet and nothing else.

Each store of a cluster with zones is in one of its own. What reaches PD or a store from another zone is led
through a relay in the zone that it comes to, which holds every byte back, each way for as long; what stays in
a zone goes straight. Clients reach TiDB without a delay.

Kernel settings that belong to a namespace are set inside it and go with it. What the whole machine shares is
written down in the lab before it is touched (`agent.kernel`), so that the next start or `down` can put it
back, whatever ended us.
"""

import functools
import ipaddress
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchbook.core.study.study_arm import Kernel
from benchbook.core.util.errors import SiteError
from benchbook.sites.agent import kernel
from benchbook.sites.machine import concurrent_steps
from benchbook.sites.machine.contract import Machine
from benchbook.sites.machine.supervised_process import Supervised
from benchbook.sites.processes.process import PATH
from benchbook.sites.workspace import PartLocation, lab_id

NAMESPACES = Path("/run/netns")
VIRTUAL = 200
"""Last part of the first virtual address in the subnet; pods have 2 and up, the bridge 1."""


def run_tool(*argv: str, stdin: str | None = None) -> str:
    """Run one of the kernel's tools and return its output; SiteError with its words if it fails."""
    env = {"PATH": PATH, "LC_ALL": "C"}
    try:
        done = subprocess.run(argv, input=stdin, env=env, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SiteError(f"{' '.join(argv)}: {error}; `benchbook doctor` says what is missing") from None
    if done.returncode != 0:
        statement = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise SiteError(f"{' '.join(argv)}: {statement}; `benchbook doctor` says what this machine can do")
    return done.stdout


@dataclass(frozen=True)
class NatRule:
    """One rule of the nat table that is ours: its chain, its words, and the packets that took it."""

    chain: str
    words: tuple[str, ...]
    packets: int


class LabNetwork:
    """The network of one lab. Made at the first request only; remains of an earlier one go first."""

    def __init__(self, token: str) -> None:
        self.id = lab_id(token)
        self.bridge = f"bb-{self.id}"

    @property
    def gateway(self) -> str:
        """This machine's address on the bridge: source of every packet to pods and services."""
        return str(self._subnet[1])

    def pod(self, number: int) -> tuple[Path, str]:
        """Make namespace `number` (1 to 150), or find it made; return its file and its address."""
        subnet, name, cable = self._subnet, f"{self.bridge}-{number}", f"bv-{self.id}-{number}"
        path, address = NAMESPACES / name, self.address(number)
        if not path.exists():
            run_tool("ip", "netns", "add", name)
            run_tool("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
            run_tool("ip", "link", "set", cable, "master", self.bridge, "up")
            run_tool("ip", "-n", name, "address", "add", f"{address}/{subnet.prefixlen}", "dev", "eth0")
            run_tool("ip", "-n", name, "link", "set", "lo", "up")
            run_tool("ip", "-n", name, "link", "set", "eth0", "up")
        return path, address

    def address(self, number: int) -> str:
        """Address that namespace `number` has or would have."""
        return str(self._subnet[1 + number])

    def virtual(self, number: int) -> str:
        return str(self._subnet[VIRTUAL + number])

    def service(self, name: str, number: int, port: int, address: str, server_port: int) -> None:
        """Make the rules that lead a virtual address to a server, unless they are there."""
        virtual = self.virtual(number)
        if self.named(name):
            return
        to = ["-d", f"{virtual}/32", "-p", "tcp", "--dport", str(port)]
        then = ["-m", "comment", "--comment", f"benchbook {self.id} {name}"]
        then += ["-j", "DNAT", "--to-destination", f"{address}:{server_port}"]
        # From our own namespaces too, but never from another machine.
        for chain in (["OUTPUT"], ["PREROUTING", "-i", self.bridge]):
            run_tool("iptables", "-w", "10", "-t", "nat", "-A", *chain, *to, *then)

    def packets(self, name: str) -> int:
        return sum(rule.packets for rule in self.named(name))

    def named(self, name: str) -> list[NatRule]:
        return [rule for rule in list_rules(self.id) if f"benchbook {self.id} {name}" in rule.words]

    def redirect(self, number: int, port: int, to: int) -> None:
        """Redirect traffic from outside to a port of namespace `number`; the rule goes with it."""
        address = self.pod(number)[1]
        inside = ["ip", "netns", "exec", f"{self.bridge}-{number}", "iptables", "-w", "10", "-t", "nat"]
        rule = ["PREROUTING", "-i", "eth0", "-p", "tcp", "-d", f"{address}/32", "--dport", str(port)]
        rule += ["-j", "DNAT", "--to-destination", f"{address}:{to}"]
        if shlex.join(rule[1:]) not in run_tool(*inside, "-S", "PREROUTING"):
            run_tool(*inside, "-A", *rule)

    def delay(self, number: int, latency_ms: float) -> None:
        """Let netem hold back all that enters and leaves namespace `number`, each way for as long."""
        added = ["root", "netem", "delay", f"{latency_ms}ms", "limit", "100000"]
        run_tool("tc", "qdisc", "replace", "dev", f"bv-{self.id}-{number}", *added)
        run_tool("tc", "-n", f"{self.bridge}-{number}", "qdisc", "replace", "dev", "eth0", *added)

    @functools.cached_property
    def _subnet(self) -> ipaddress.IPv4Network:
        """Subnet of the bridge, which is made with it."""
        remove_objects(self.id)
        subnet = find_subnet(int(self.id, 16))
        run_tool("ip", "link", "add", self.bridge, "type", "bridge")
        run_tool("ip", "address", "add", f"{subnet[1]}/{subnet.prefixlen}", "dev", self.bridge)
        run_tool("ip", "link", "set", self.bridge, "up")
        return subnet


def find_subnet(seed: int) -> ipaddress.IPv4Network:
    """A subnet of 10.0.0.0/8 that no route of this machine touches; a seed fixes the first try."""
    routes = json.loads(run_tool("ip", "-j", "-4", "route", "show", "table", "all"))
    taken = [route["dst"] for route in routes if re.match(r"\d", route.get("dst", ""))]
    used = [ipaddress.ip_network(text, strict=False) for text in taken]
    for step in range(256):
        number = (seed + step * 257) % 65536
        subnet = ipaddress.IPv4Network((0x0A000000 + (number << 8), 24))
        if not any(subnet.overlaps(other) for other in used):
            return subnet
    raise SiteError("no free subnet in 10.0.0.0/8; look at `ip route` and remove what is not needed")


def list_rules(id: str) -> list[NatRule]:
    """Rules of the nat table with a lab's comment, with their counters."""
    try:
        listed = run_tool("iptables", "-w", "10", "-t", "nat", "-S", "-v") if os.geteuid() == 0 else ""
    except SiteError:
        return []
    rules = []
    for line in listed.splitlines():
        words = shlex.split(line)
        mine = [word for word in words if word.split()[:2] == ["benchbook", id]]
        if words[0] == "-A" and mine and "--comment" in words:
            at = words.index("-c") if "-c" in words else None
            packets = int(words[at + 1]) if at is not None else 0
            kept = words[2:at] + words[at + 3 :] if at is not None else words[2:]
            rules.append(NatRule(words[1], tuple(kept), packets))
    return rules


def list_objects(id: str) -> list[str]:
    """Everything in the kernel that carries a lab's id, in words."""
    results = [f"rule in {rule.chain}: {' '.join(rule.words)}" for rule in list_rules(id)]
    results += [f"namespace {path.name}" for path in sorted(NAMESPACES.glob(f"bb-{id}-*"))]
    links = sorted(Path("/sys/class/net").glob(f"b[bv]-{id}*"))
    return results + [f"link {path.name}" for path in links]


def remove_objects(id: str) -> list[str]:
    """Remove everything that carries a lab's id, and nothing else; returns the removed, in words."""
    before = list_objects(id)
    for rule in list_rules(id) if before else ():
        run_tool("iptables", "-w", "10", "-t", "nat", "-D", rule.chain, *rule.words)
    for path in sorted(NAMESPACES.glob(f"bb-{id}-*")):
        run_tool("ip", "netns", "delete", path.name)
    for path in sorted(Path("/sys/class/net").glob(f"b[bv]-{id}*")):
        # The other end of a cable goes with its namespace, a moment later.
        if path.exists():
            try:
                run_tool("ip", "link", "delete", path.name)
            except SiteError:
                if path.exists():
                    raise
    left = list_objects(id) if before else ()
    return [name for name in before if name not in left]


class DelayRelay(Supervised):
    """A relay to `server` (ADDRESS:PORT) that holds every byte back for `latency_ms` each way."""

    what = "the delaying hop"

    def __init__(self, machine: Machine, place: PartLocation, server: str, latency_ms: float = 0.0) -> None:
        super().__init__(machine, place)
        self.server, self.latency_ms = server, latency_ms

    def ensure(self) -> None:
        concurrent_steps.run_steps(self.starting(), self.machine.look_s)

    def starting(self) -> concurrent_steps.Steps:
        """Start as `ensure` does, and yield until the port is its own."""
        if self.is_up:
            return
        self._must_have_ports(self.place.port)
        program = [sys.executable, "-m", "benchbook.sites.local.delay_proxy"]
        ends = [f"{self.place.address}:{self.place.port}", self.server, str(self.latency_ms)]
        yield from self._start_in_steps(program + ends, self.holds_port)

    def identity(self) -> dict[str, Any]:
        child = self.running()
        return {"relay_pid": child.pid, "relay_started": child.started}

    def facts(self) -> dict[str, Any]:
        return {"latency_ms": self.latency_ms, "made_by": "a delaying relay of our own"}


# Namespaces of clusters come behind those of pods; ports of hops are a namespace's own.
FIRST, MOST, CLUSTERS, HOPS_AT = 70, 8, 10, 4000


@dataclass(frozen=True)
class ClusterZones:
    """The zones of one cluster: `rank` is its number, `latency_ms` is added each way between two."""

    network: LabNetwork
    rank: int
    count: int
    latency_ms: float

    def place(self, place: PartLocation, zone: int) -> PartLocation:
        namespace, address = self.network.pod(self._number(zone))
        return replace(place, address=address, where=replace(place.where, namespace=namespace))

    def address(self, zone: int) -> str:
        """Address of a zone; nothing is made for it."""
        return self.network.address(self._number(zone))

    def addresses(self, zone: int) -> list[str]:
        """Addresses of a zone wherever its cluster may be: arms change places between blocks."""
        return [self.network.address(FIRST + MOST * rank + zone) for rank in range(CLUSTERS)]

    def hop(self, member: Any, zone: int, number: int) -> DelayRelay:
        """The hop before a part, with a rule that leads all traffic from other zones there."""
        port, to = HOPS_AT + number, member.place
        self.network.redirect(self._number(zone), to.port, port)
        place = replace(to, name=f"{to.name}-hop", port=port)
        return DelayRelay(member.machine, place, f"{to.address}:{to.port}", self.latency_ms)

    def facts(self, stores: Sequence[str], tidb: int) -> dict[str, Any]:
        """Facts of the zones, with the store that each TiDB shares its zone with."""
        result = "a delaying relay of our own in the zone that is reached"
        beside = [stores[rank % len(stores)] for rank in range(tidb)]
        return {"zones": self.count, "latency_ms": self.latency_ms, "made_by": result, "tidb_beside": beside}

    def _number(self, zone: int) -> int:
        return FIRST + MOST * self.rank + zone


def set_kernel(profile: Kernel, namespace: Path | None, records: Path) -> dict[str, int]:
    """Set kernel settings in a namespace (None: the machine's); return those read back, or SiteError."""

    def put(key: str, name: str, value: int) -> int:
        if namespace is None or key not in kernel.OF_NAMESPACE:
            return kernel.apply_setting(records, name, value)
        place = str(kernel.SYSCTL / name)
        run_tool("nsenter", f"--net={namespace}", "tee", place, stdin=str(value))
        return int(run_tool("nsenter", f"--net={namespace}", "cat", place))

    return kernel.set_all(profile, put)
