"""A connection to a port of a pod, from inside the pod, as a socket that a database driver can use.

The client library's own forwarding waits on the bare socket and misses what came in one piece with the answer
to its request: one connection in some dozens then stood still until the server gave it up.
"""

from __future__ import annotations

import http.client
from typing import Any

from kubernetes.stream.ws_client import create_websocket, get_websocket_url
from websocket import ABNF, WebSocketException, WebSocketTimeoutException

from benchbook.sites.machine.arriving import Arriving

# Each forwarded port has two channels, and each begins with two bytes: the port's number.
DATA, ERROR = 0, 1
PREFIX_BYTES = 2


class Tunnel:
    """One forwarded connection; as a socket it is its own file. Nothing reads ahead of who asks."""

    def __init__(self, api: Any, namespace: str, pod: str, port: int) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/portforward"
        asked = api.param_serialize("GET", path, auth_settings=["BearerToken"], header_params={})
        url = get_websocket_url(asked[1], [("ports", str(port))])
        self._where = f"{pod}:{port}"
        self._read, self._begun = b"", {DATA: 0, ERROR: 0}
        try:
            self._socket = create_websocket(api.configuration, url, asked[2])
        except (WebSocketException, ValueError) as error:
            raise ConnectionError(f"{self._where}: {error}") from None

    def settimeout(self, seconds: float | None) -> None:
        """Set how long one answer may take."""
        self._socket.settimeout(seconds)

    def sendall(self, data: bytes) -> None:
        """Send all bytes."""
        try:
            self._socket.send_binary(bytes([DATA]) + bytes(data))
        except WebSocketException as error:
            raise ConnectionError(f"{self._where}: {error}") from None

    def makefile(self, mode: str = "rb") -> Tunnel:
        """Return what is read from: itself."""
        return self

    def read(self, size: int) -> bytes:
        """Return so many bytes; fewer if the other side has ended."""
        while len(self._read) < size and self._more():
            pass
        found, self._read = self._read[:size], self._read[size:]
        return found

    def receive(self) -> bytes:
        """Wait for the bytes that come next; none at the end."""
        while not self._read and self._more():
            pass
        found, self._read = self._read, b""
        return found

    def close(self) -> None:
        """End the connection at once."""
        self._socket.shutdown()

    def _more(self) -> bool:
        """Take one frame in; say whether there may be another."""
        try:
            opcode, frame = self._socket.recv_data_frame(True)
        except WebSocketTimeoutException as error:
            raise TimeoutError(f"{self._where}: {error}") from None
        except WebSocketException:
            return False
        if opcode == ABNF.OPCODE_CLOSE:
            return False
        if opcode != ABNF.OPCODE_BINARY or not frame.data:
            return True
        channel, data = frame.data[0], frame.data[1:]
        if channel not in self._begun:
            return True
        left = max(0, PREFIX_BYTES - self._begun[channel])
        self._begun[channel] += len(data)
        if channel == ERROR:
            if data[left:]:
                raise ConnectionError(f"{self._where}: {data[left:].decode('utf-8', 'replace')}")
            return True
        self._read += data[left:]
        return True


def get(tunnel: Tunnel, path: str, wait_s: float = 5.0) -> str:
    """Return what a web server behind a tunnel has at a path; OSError if it has nothing there.

    The tunnel is used up.
    """
    try:
        tunnel.settimeout(wait_s)
        tunnel.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = http.client.HTTPResponse(Arriving(tunnel.receive))  # type: ignore[arg-type]
        answer.begin()
        if answer.status != http.client.OK:
            raise ConnectionError(f"{path}: {answer.status} {answer.reason}")
        return answer.read().decode("utf-8")
    except http.client.HTTPException as error:
        raise ConnectionError(f"{path}: {error}") from None
    finally:
        tunnel.close()
