"""What all proxies share, whichever program one is."""

import contextlib
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.proxies.haproxy import HAProxy
from benchbook.sites.proxies.proxy import Proxy
from tests.others import socat_proxy


class Two(Proxy):
    """One that takes two ports, and only notes that it was started."""

    traits = replace(socat_proxy.TRAITS, ports=2)
    version_words = socat_proxy.Socat.version_words
    is_started = False

    def _start(self) -> None:
        self.is_started = True


class Machine:
    """One with socat, on which a program listens on the `taken` ports."""

    host, folder = None, PurePosixPath("/nowhere")

    def __init__(self, *taken: int) -> None:
        self.taken = taken

    def account(self, name: str) -> str:
        return name

    def program(self, name: str) -> str:
        return f"/usr/bin/{name}"

    def says(self, _: list[str]) -> str:
        return "socat version 1.7.4"

    def listeners(self, port: int) -> list[dict[str, Any]]:
        return [{"pid": 7, "address": "0.0.0.0", "command": "other"}] if port in self.taken else []


def made(*taken: int) -> Two:
    machine: Any = Machine(*taken)
    return Two(machine, labs.PartLocation("proxy", labs.LOOPBACK, 4000), ["127.0.0.1:3306"])


@pytest.mark.parametrize(("port", "is_free"), [(4000, False), (4001, False), (4002, True)])
def test_a_proxy_starts_unless_another_has_one_of_its_ports(port: int, is_free: bool):
    proxy = made(port)
    taken = pytest.raises(SiteError, match=f"port {port} .* pid 7: other")
    with contextlib.nullcontext() if is_free else taken:
        proxy.ensure()
    assert proxy.is_started is is_free


def test_a_proxy_that_says_nothing_of_captures_is_not_taken_for_one_that_is_too_old():
    assert HAProxy.unable_to_capture(Path("/nowhere")) is None
