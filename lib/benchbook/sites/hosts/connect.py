"""A connection to one host, through Fabric, which by itself would accept any host key."""

from __future__ import annotations

import os
from typing import Any

import fabric
import paramiko

from benchbook.core.errors import SiteError
from benchbook.core.inventory import Target

KEEPALIVE_S = 5


class Refused(SiteError):
    """The host can't be trusted, or it does not let us in: trying again would not help."""


def connect(target: Target) -> fabric.Connection:
    """Open a connection; Refused if host key or account are wrong, OSError if the host can't be reached.

    The keys of host and jump host must stand in the inventory's `known_hosts`; none is added.
    """
    jump = connect(target.gateway) if target.gateway is not None else None
    try:
        return _opened(target, jump)
    except BaseException:
        if jump is not None:
            jump.close()
        raise


def close(connection: fabric.Connection) -> None:
    """Close a connection, and that to its jump host."""
    connection.close()
    if isinstance(connection.gateway, fabric.Connection):
        connection.gateway.close()


def _opened(target: Target, jump: fabric.Connection | None) -> fabric.Connection:
    connection = fabric.Connection(
        target.host,
        user=target.user,
        port=target.port,
        connect_timeout=round(target.timeout_s),
        gateway=jump,
        # Neither Fabric's nor SSH's own settings files: the inventory says it all.
        config=fabric.Config(lazy=True, overrides={"load_ssh_configs": False}),
        connect_kwargs=_credentials(target),
    )
    connection.client = _client(target)
    known, where = target.known_hosts, f"{target.name} ({target.host}, port {target.port})"
    shown = target.host if target.port == 22 else f"[{target.host}]:{target.port}"
    try:
        connection.open()
    except paramiko.BadHostKeyException as error:
        raise Refused(
            f"{where}: its key is not the one in {known} (it shows {error.key.get_name()} "
            f"{error.key.fingerprint}); if the host was made anew, compare the fingerprint there, then "
            f"`ssh-keygen -f {known} -R '{shown}'` and add the new key"
        ) from None
    except (paramiko.PasswordRequiredException, paramiko.AuthenticationException) as error:
        said = str(error).rstrip(".")
        how = f"the key {target.key_file}" if target.key_file else "the keys of your SSH agent and ~/.ssh"
        raise Refused(
            f"{where}: {target.user} is not let in with {how}: {said}; add the public key to "
            "its authorized_keys, or name another user or key_file in the inventory"
        ) from None
    except paramiko.ChannelException as error:
        # An OSError would be taken for a loss on our side; so is this, but it says who could not get on.
        said = f"{target.gateway.name} gets no connection to it" if target.gateway else "no connection"
        raise ConnectionError(f"{said}: {error}") from None
    except paramiko.SSHException as error:
        if "not found in known_hosts" in str(error):
            raise Refused(
                f"{where}: its key is not in {known}; compare the fingerprint on the host, then add the line "
                f"that `ssh-keyscan -p {target.port} {target.host}` prints"
            ) from None
        raise ConnectionError(str(error)) from None
    except EOFError:
        raise ConnectionError("it closed the connection") from None
    connection.transport.set_keepalive(KEEPALIVE_S)
    return connection


def _credentials(target: Target) -> dict[str, Any]:
    """Return how to log in: with one key file, or with what the user's agent and folder have; no password."""
    wait = dict.fromkeys(("banner_timeout", "auth_timeout", "channel_timeout"), target.timeout_s)
    if target.key_file is None:
        return wait | {"allow_agent": True, "look_for_keys": True}
    if not os.access(target.key_file, os.R_OK):
        raise Refused(
            f"{target.name}: {target.key_file}: the key can't be read; correct key_file in the inventory"
        )
    return wait | {"key_filename": [str(target.key_file)], "allow_agent": False, "look_for_keys": False}


def _client(target: Target) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    try:
        client.load_system_host_keys(str(target.known_hosts))
    except OSError as error:
        raise Refused(
            f"{target.name}: {target.known_hosts}: {error.strerror}; host keys must be known beforehand: "
            "compare the fingerprint on the host, then add the line that "
            f"`ssh-keyscan -p {target.port} {target.host}` prints to this file"
        ) from None
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    return client
