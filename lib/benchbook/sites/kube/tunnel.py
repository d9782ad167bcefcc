"""A connection to a port of a pod, from inside the pod, as a socket that a database driver can use.

The client library's own forwarding waits on the bare socket and misses what came in one piece with the answer
to its request: one connection in some dozens then stood still until the server gave it up.
"""

from __future__ import annotations

from typing import Any

from kubernetes.stream.ws_client import create_websocket, get_websocket_url
from websocket import ABNF, WebSocketException, WebSocketTimeoutException

from benchbook.sites.machine.far import Far

# Each forwarded port has two channels, and each begins with two bytes: the port's number.
DATA, ERROR = 0, 1
PREFIX_BYTES = 2


class Tunnel(Far):
    """One forwarded connection; OSError if there is none."""

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
        self._socket.settimeout(seconds)

    def sendall(self, data: bytes) -> None:
        try:
            self._socket.send_binary(bytes([DATA]) + bytes(data))
        except WebSocketException as error:
            raise ConnectionError(f"{self._where}: {error}") from None

    def receive(self) -> bytes:
        while not self._read and self._more():
            pass
        found, self._read = self._read, b""
        return found

    def close(self) -> None:
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
