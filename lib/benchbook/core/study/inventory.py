"""The inventory: hosts by role, and their access; never a password."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, model_validator

from benchbook.core.study import descriptors
from benchbook.core.study.study_base import Model, Name, known_names, require_distinct
from benchbook.core.study.study_hosts import ADDRESS, no_socket
from benchbook.core.study.validation_errors import validate_document
from benchbook.core.util import paths, yaml_file
from benchbook.core.util.errors import InputErrors

Role = Literal["server", "proxy", "client", "pd", "tikv", "control"]
ROLES: tuple[Role, ...] = get_args(Role)
Program = Annotated[str, *known_names("program", descriptors.list_programs)]
FOLDER = r"^(/[A-Za-z0-9_.-]+)+$"
FilePath = Annotated[str, Field(pattern=FOLDER)]
VARIABLE = "BENCHBOOK_INVENTORY"
BASE = "inventories"


class Login(Model):
    """Login over SSH."""

    port: int | None = Field(None, ge=1, le=65535, examples=[22])
    """Port of its SSH server; null: 22."""
    user: str | None = Field(None, pattern=r"^[a-z_][a-z0-9_-]{0,31}$", examples=["root"])
    """User to log in as; null: your own name. Servers run as their packages' users if it is root, else as
    it."""
    key_file: str | None = Field(None, min_length=1, examples=["~/.ssh/id_ed25519"])
    """File of a private key without passphrase, from the inventory's folder on; null: the keys of your SSH
    agent and of `~/.ssh`."""
    known_hosts: str | None = Field(None, min_length=1, examples=["~/.ssh/known_hosts"])
    """File with the host's key, from the inventory's folder on; null: `~/.ssh/known_hosts`. Another key is
    refused, and so is one that isn't there."""


class Access(Login):
    """Access to a host over SSH; keys that a host leaves out are taken from `defaults`."""

    folder: str | None = Field(None, pattern=FOLDER, examples=["/var/lib/benchbook"])
    """Folder for servers' data and for the agent, on a disk that is to be measured; null:
    /var/lib/benchbook for root, else .benchbook in the user's home."""
    gateway: Name | None = None
    """Name under `gateways` of the jump host that leads to it; null: it is reached directly."""
    programs: dict[Program, FilePath] | None = Field(None, examples=[{"tiproxy": "/opt/tiproxy/tiproxy"}])
    """Paths of programs that are not where the host's own packages are; null: none."""


class Gateway(Login):
    """A jump host: nothing is done on it, connections to other hosts go through it."""

    host: Annotated[str, AfterValidator(no_socket)] = Field(pattern=ADDRESS, examples=["198.51.100.7"])
    """Name or address at which its SSH answers."""


class InventoryHost(Access):
    """One host."""

    host: Annotated[str, AfterValidator(no_socket)] = Field(pattern=ADDRESS, examples=["192.0.2.10"])
    """Name or address at which SSH answers."""
    address: Annotated[str | None, AfterValidator(no_socket)] = Field(
        None, pattern=ADDRESS, examples=["10.0.0.10"]
    )
    """Address at which other hosts reach it, and to which its server binds; null: `host`."""
    roles: Annotated[tuple[Role, ...], Field(min_length=1), AfterValidator(require_distinct)]
    """What it is for: `server`, `proxy`, `client`, and for TiDB clusters `pd`, `tikv`, `control` (where
    `tiup` is); several each."""


class Inventory(Model):
    """Hosts by role. The first that has a role has it in every arm."""

    defaults: Access = Access()
    """How all hosts are reached that don't say otherwise."""
    hosts: dict[Name, InventoryHost] = Field(min_length=1)
    """The hosts by name."""
    gateways: dict[Name, Gateway] = Field({})
    """Jump hosts by name."""
    lease_s: float = Field(900.0, ge=5, le=86_400, examples=[900.0])
    """Seconds after which a host ends what we started there, if it hears no more of us."""
    patience_s: float = Field(300.0, ge=1, le=86_400, examples=[300.0])
    """Seconds for which a lost connection is tried again; less than `lease_s`."""
    timeout_s: float = Field(10.0, ge=1, le=600, examples=[10.0])
    """Seconds to wait for a connection, and for an answer, before it counts as lost."""

    @model_validator(mode="after")
    def _whole(self) -> Inventory:
        if wrong := [*self._find_mistakes()]:
            raise ValueError("\n".join(wrong))
        return self

    def _find_mistakes(self) -> Iterator[str]:
        if self.patience_s >= self.lease_s:
            yield f"patience_s: {self.patience_s:g}: not less than lease_s {self.lease_s:g}; write less"
        first: dict[tuple[Any, ...], str] = {}
        for name, machine in self.hosts.items():
            # The same address behind two gateways is two hosts.
            way = machine.gateway or self.defaults.gateway
            place = (way, machine.host, machine.port or self.defaults.port or 22)
            if (other := first.setdefault(place, name)) != name:
                remedy = "give one all the roles, remove the other"
                yield f"hosts.{name}: the same host as {other}; {remedy}"
            if way is not None and way not in self.gateways:
                remedy = "write it there, or remove it"
                yield f"hosts.{name}.gateway: {way}: no such name under gateways; {remedy}"

    def of(self, role: str) -> list[str]:
        """Names of the hosts that have a role, in the file's order."""
        return [name for name, machine in self.hosts.items() if role in machine.roles]


@dataclass(frozen=True)
class Target:
    """One host with nothing left open but its folder, dependent on the user's home there."""

    name: str
    host: str
    address: str
    roles: tuple[str, ...]
    port: int
    user: str
    key_file: Path | None
    known_hosts: Path
    folder: str | None
    lease_s: float
    patience_s: float
    timeout_s: float
    gateway: Target | None = None
    programs: Mapping[str, str] = field(default_factory=dict, hash=False)


def inventory_file(name: str) -> Path:
    """Path of an inventory: BENCHBOOK_INVENTORY, else `inventories/NAME.yaml` in the clone."""
    named = os.environ.get(VARIABLE)
    return Path(named).resolve() if named else paths.find_root() / BASE / f"{name}.yaml"


def load_hosts(name: str, roles: Sequence[str] = ("server", "client")) -> dict[str, Target]:
    """Hosts of an inventory by name; InputErrors as `read_hosts` raises them."""
    path = inventory_file(name)
    return read_hosts(path, str(path) if os.environ.get(VARIABLE) else f"{BASE}/{path.name}", roles)


def read_hosts(path: Path, shown: str, roles: Sequence[str] = ()) -> dict[str, Target]:
    """Hosts of an inventory file by name; InputErrors with all mistakes and absent `roles`."""
    if not path.is_file():
        remedy = f"write it as docs/ssh.md shows, or name its file in {VARIABLE}"
        raise InputErrors([f"{shown}: no such inventory; {remedy}"])
    inventory = validate_document(yaml_file.read_mapping(path, shown), Inventory)
    if absent := [role for role in roles if not inventory.of(role)]:
        raise InputErrors([f"{shown}: hosts: no host has the role {role}; add it to one" for role in absent])
    hosts = {}
    for name, machine in inventory.hosts.items():
        inputs = dict(inventory.defaults) | machine.model_dump(exclude_none=True)
        inputs["programs"] = (inventory.defaults.programs or {}) | (machine.programs or {})
        hosts[name] = _build_target(inventory, name, inputs, path.parent)
    return hosts


def _build_target(inventory: Inventory, name: str, inputs: Mapping[str, Any], base: Path) -> Target:
    """A host or a gateway with the needs of its SSH; a gateway has no more than that."""
    key, hosts_file = inputs["key_file"], inputs["known_hosts"] or "~/.ssh/known_hosts"
    gateway = None
    if (way := inputs.get("gateway")) is not None:
        gateway = _build_target(inventory, way, dict(inventory.gateways[way]), base)
    return Target(
        name=name,
        host=inputs["host"],
        address=inputs.get("address") or inputs["host"],
        roles=inputs.get("roles", ()),
        port=inputs["port"] or 22,
        user=inputs["user"] or getpass.getuser(),
        key_file=base / Path(key).expanduser() if key else None,
        known_hosts=base / Path(hosts_file).expanduser(),
        folder=inputs.get("folder"),
        lease_s=inventory.lease_s,
        patience_s=inventory.patience_s,
        timeout_s=inventory.timeout_s,
        gateway=gateway,
        programs=inputs.get("programs", {}),
    )
