"""Hosts for the tests of the site over SSH, and that nothing is left on them."""

from collections.abc import Iterator

import pytest

from tests import beside, rooms
from tests.sites.ssh_hosts import Rack, leftovers, racked


@pytest.fixture(scope="module")
def rack() -> Iterator[Rack]:
    """A server, a proxy and a client."""
    with racked(100 + rooms.number(), "server1", "proxy1", "client1") as made:
        yield made


@pytest.fixture
def all_is_as_it_was(rack: Rack) -> Iterator[None]:
    """After each test nothing runs on the hosts but sshd, whatever the test did."""
    yield
    assert not beside.gone(lambda: leftovers(rack))
    assert not any(host.listening() for host in rack.hosts.values())
