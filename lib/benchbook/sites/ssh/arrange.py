"""From a study's arms and an inventory to parts on hosts, and why an arm can't be made so; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchbook.core import inventory
from benchbook.core.inventory import Target
from benchbook.core.study import Study
from benchbook.core.study_arm import Arm, Kernel

# What an arm may ask for here; anything else that it sets leaves it out by name.
KNOWN = frozenset({"access", "cpu", "hosts", "kernel"})
WAYS = ("direct", "haproxy")
ENGINES = ("mariadb",)
# What a host needs for its role.
TOOLS = {"server": ("mariadbd", "mariadb-install-db"), "proxy": ("haproxy",), "client": ("sysbench",)}


@dataclass(frozen=True)
class Part:
    """A server or a proxy on a host; `to` is what a proxy relays to. `address` is where others reach it."""

    name: str
    kind: str
    host: str
    address: str
    port: int
    cpus: tuple[int, ...] | None = None
    kernel: Kernel | None = None
    to: Part | None = None


@dataclass(frozen=True)
class Chain:
    """All that an arm needs: server, proxy if any, and the host of its client."""

    server: Part
    proxy: Part | None
    client: str
    client_cpus: tuple[int, ...] | None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Server and proxy, from the server to what the client connects to."""
        return (self.server, self.proxy) if self.proxy else (self.server,)

    @property
    def entry(self) -> Part:
        """What the client connects to."""
        return self.parts[-1]

    @property
    def hosts(self) -> dict[str, str]:
        """The host of each role."""
        proxy = {"proxy": self.proxy.host} if self.proxy else {}
        return {"server": self.server.host, **proxy, "client": self.client}


def obstacle(study: Study, arm: Arm, hosts: Mapping[str, Target]) -> str | None:
    """Return why an arm can't be made on these hosts, or None."""
    if study.engine.name not in ENGINES:
        return f"the site ssh starts {' or '.join(ENGINES)}, not {study.engine.name}"
    if study.engine.binary is not None:
        return "engine.binary is not used on the site ssh, where hosts have their own packages; remove it"
    if arm.access not in WAYS:
        return f"access {arm.access} is not made on the site ssh; it knows {' and '.join(WAYS)}"
    for key in arm.setting:
        if key not in KNOWN:
            return f"{key} is not made on the site ssh"
    for role, name in arm.hosts.items():
        if name not in hosts or role not in hosts[name].roles:
            return f"hosts.{role}: {name}: no host of the inventory with this name has the role {role}"
    if any(cpu.quota is not None for cpu in arm.cpu.values()):
        return "cpu.quota is not made on the site ssh; cores are"
    if arm.access == "haproxy" and not _of(hosts, "proxy"):
        return "no host of the inventory has the role proxy"
    return None


def chains(study: Study, hosts: Mapping[str, Target]) -> dict[str, Chain]:
    """Return the chain of each arm that can be made; arms that ask for the same server share it.

    The first host with a role has it, if the arm names no other. Parts of a host take the ports from
    `site.port` on, in the arms' order.
    """
    made: dict[tuple[object, ...], Part] = {}

    def share(kind: str, host: str, *key: object, **rest: object) -> Part:
        place = (kind, host, *key)
        if place not in made:
            rank = sum(part.kind == kind for part in made.values())
            port = study.site.port + sum(part.host == host for part in made.values())
            name = kind if rank == 0 else f"{kind}-{rank + 1}"
            made[place] = Part(name, kind, host, hosts[host].address, port, **rest)  # type: ignore[arg-type]
        return made[place]

    found = {}
    for name, arm in study.arms.items():
        if obstacle(study, arm, hosts) is not None:
            continue
        cores = {part: cpu.cores for part, cpu in arm.cpu.items()}
        server = share(
            *("server", _of(hosts, "server", arm), cores.get("server"), arm.kernel),
            cpus=cores.get("server"),
            kernel=arm.kernel,
        )
        proxy = None
        if arm.access == "haproxy":
            proxy = share(
                *("proxy", _of(hosts, "proxy", arm), cores.get("proxy"), server),
                cpus=cores.get("proxy"),
                to=server,
            )
        found[name] = Chain(server, proxy, _of(hosts, "client", arm), cores.get("client"))
    return found


def summary(study: Study) -> str:
    """Say in a line for each role which host has it, and which arms can't be made on these hosts."""
    assert study.site.inventory is not None
    hosts = inventory.load(study.site.inventory)
    lines = []
    for role in inventory.ROLES:
        named = [f"{name} ({target.host})" for name, target in hosts.items() if role in target.roles]
        lines.append(f"  {role:12}{', '.join(named) or 'none'}")
    for name, arm in study.arms.items():
        if why := obstacle(study, arm, hosts):
            lines.append(f"  not made    {name}: {why}")
    return "\n".join(lines)


def _of(hosts: Mapping[str, Target], role: str, arm: Arm | None = None) -> str:
    asked = arm.hosts.get(role) if arm is not None else None  # type: ignore[call-overload]
    return asked or next((name for name, target in hosts.items() if role in target.roles), "")
