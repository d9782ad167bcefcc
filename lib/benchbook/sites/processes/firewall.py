"""The firewall's rules in a process's network namespace, and the packets that they have dropped.

The kernel is asked itself: nftables, which iptables writes too, over netlink, and the tables of older
iptables by getsockopt(2). Programs that list rules take longer and are not everywhere. Only who may
administer the network is answered. Python's own library alone: this file is also carried to hosts and pods.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchbook.sites.processes.taskstats import iter_attributes
from benchbook.sites.processes.tcp_bytes import iter_answers

PROC = Path("/proc")
OURS = b"benchbook "
"""How the comment of a service's rule begins (`sites.local.network`)."""
# What <linux/netfilter/nfnetlink.h> and <linux/netfilter/nf_tables.h> number.
NETFILTER, GET_RULE, DUMP, HEAD = 12, 10 << 8 | 7, 0x301, 4
TABLE, CHAIN, HANDLE, EXPRESSIONS, NAME, DATA, PACKETS = 1, 2, 3, 4, 1, 2, 2
# A verdict that drops, as an attribute, and the word that refuses.
DROP, REJECT = struct.pack("=HHHHI", 12, 2, 8, 1, 0), b"reject\0"
# <linux/netfilter_ipv4/ip_tables.h> and its like for IPv6: where their names are, and an entry's own bytes.
TABLES = ((socket.IPPROTO_IP, "ip_tables_names", 84), (socket.IPPROTO_IPV6, "ip6_tables_names", 136))
INFO, ENTRIES = 64, 65
NEW_NET = 0x40000000


class Rules(NamedTuple):
    """Number and digest of the rules that are not ours, and packets that any rule has dropped."""

    rules: int
    digest: str
    dropped: int


def read_rules(pid: int) -> Rules | None:
    """Rules in a process's namespace; None if the kernel doesn't tell them this account."""
    try:
        results = [*_run_inside(pid, _of_nftables), *_of_tables(pid)]
    except OSError:
        return None
    foreign = [rule for rule, drops, _ in results if drops or OURS not in rule]
    digest = hashlib.sha256(b"\n".join(foreign)).hexdigest()[:12]
    return Rules(len(foreign), digest, sum(packets for _, drops, packets in results if drops))


def describe_rules(pid: int) -> str:
    """Rules that are not ours, in words: the same words, the same rules."""
    rules = read_rules(pid)
    if rules is None:
        return "unknown"
    return f"{rules.rules} rules {rules.digest}" if rules.rules else "no rules"


Rule = tuple[bytes, bool, int]
"""What a rule is, whether it drops, and how many packets met it."""


def _run_inside(pid: int, ask: Callable[[], list[Rule]]) -> list[Rule]:
    """Ask in a process's network namespace, from a separate thread if it is another than ours."""
    place = f"/proc/{pid}/ns/net"
    if os.stat(place).st_ino == os.stat("/proc/self/ns/net").st_ino:
        return ask()
    results: list[list[Rule] | OSError] = []

    def there() -> None:
        handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(handle, NEW_NET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            results.append(ask())
        except OSError as error:
            results.append(error)
        finally:
            os.close(handle)

    thread = threading.Thread(target=there)
    thread.start()
    thread.join()
    if not results or isinstance(results[0], OSError):
        raise results[0] if results else OSError("the kernel did not answer")  # type: ignore[misc]
    return results[0]


def _of_nftables() -> list[Rule]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETFILTER) as link:
        link.settimeout(2.0)
        link.send(struct.pack("=IHHIIBBH", 20, GET_RULE, DUMP, 1, 0, socket.AF_UNSPEC, 0, 0))
        return [_parse_rule(body[HEAD:]) for body in iter_answers(link, "rules")]


def _parse_rule(body: bytes) -> Rule:
    """A rule by its table, chain and handle, as no later rule has them again."""
    attributes = dict(iter_attributes(body))
    drops = DROP in body or REJECT in body
    what = b" ".join(attributes.get(key, b"") for key in (TABLE, CHAIN, HANDLE)) + OURS * (OURS in body)
    return what, drops, _count_packets(attributes.get(EXPRESSIONS, b"")) if drops else 0


def _count_packets(expressions: bytes) -> int:
    """Packets that a rule's counter has; 0 for a rule without one."""
    for _, attribute in iter_attributes(expressions):
        reported_iter_attributes = dict(iter_attributes(attribute))
        if reported_iter_attributes.get(NAME) == b"counter\0":
            return int.from_bytes(dict(iter_attributes(reported_iter_attributes[DATA]))[PACKETS], "big")
    return 0


def _of_tables(pid: int) -> list[Rule]:
    """Rules of older iptables; asking makes no table that is not in use."""
    tables: list[Rule] = []
    for level, listed, head in TABLES:
        try:
            names = (PROC / str(pid) / "net" / listed).read_bytes().split()
        except FileNotFoundError:
            continue  # A kernel without them.
        for name in names:
            tables += _run_inside(
                pid,
                lambda name=name, level=level, head=head: _read_table(name, level, head),  # type: ignore[misc]
            )
    return tables


def _read_table(name: bytes, level: int, head: int) -> list[Rule]:
    """Rules of one table: all entries except those that begin and end chains."""
    family = socket.AF_INET if level == socket.IPPROTO_IP else socket.AF_INET6
    with socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW) as sock:
        info = _get_option(sock, level, INFO, name.ljust(84, b"\0"))
        ends, (size,) = struct.unpack_from("=5I", info, 56), struct.unpack_from("=I", info, 80)
        question = name.ljust(32, b"\0") + struct.pack("=II", size, 0) + bytes(size)
        body = _get_option(sock, level, ENTRIES, question)
    entries, at, is_own = body[40:], 0, False
    table: list[Rule] = []
    while at < size:
        target_at, length = struct.unpack_from("=HH", entries, at + head + 4)
        counter = at + (head + 19 & ~7)
        (packets,) = struct.unpack_from("=Q", entries, counter)
        name_at = at + target_at + 2
        kind = entries[name_at : name_at + 29].partition(b"\0")[0]
        (verdict,) = struct.unpack_from("=i", entries, at + target_at + 32)
        if kind == b"ERROR":
            # A chain of one's own begins here, or the table ends; the chain before has its end as an entry.
            table, is_own = table[: len(table) - is_own], True
        elif at not in ends:
            what = name + entries[at : at + head] + entries[counter + 16 : at + length]
            table.append((what, kind == b"REJECT" or (not kind and verdict == -1), packets))
        at += length
    return table


def _get_option(sock: socket.socket, level: int, option: int, question: bytes) -> bytes:
    """Result of getsockopt(2) for a buffer with a question, as Python's own leaves it empty."""
    buffer, length = ctypes.create_string_buffer(question, len(question)), ctypes.c_uint32(len(question))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.getsockopt(sock.fileno(), level, option, buffer, ctypes.byref(length)) != 0:
        raise OSError(ctypes.get_errno(), "getsockopt")
    return buffer.raw
