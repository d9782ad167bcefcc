"""The section of a study file about an endpoint that others run; no secret stands in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from benchbook.core import traits
from benchbook.core.study_base import Model

ADDRESS = r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$"


def no_socket(value: str | None) -> str | None:
    """Refuse the name that the client library takes for a socket of its own machine, whatever the port."""
    if value == "localhost":
        raise ValueError("leads to a socket, not to a port; write 127.0.0.1 or the host's own address")
    return value


Host = Annotated[str, AfterValidator(no_socket), Field(pattern=ADDRESS, examples=["db.example.org"])]
Port = Annotated[int, Field(ge=1, le=65535, examples=[3306])]


class Place(Model):
    """Where one arm connects to, such as a proxy in front of the same server."""

    host: Host
    """Name or address of the arm's endpoint."""
    port: Port
    """Its TCP port."""


class Existing(Model):
    """An endpoint that others run: nothing is started or stopped there."""

    host: Host
    """Name or address of the server, or of what stands in front of it."""
    port: Port = 3306
    """Its TCP port."""
    database: str = Field("sbtest", pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$", examples=["sbtest"])
    """A schema of our own: empty at first, or loaded by this study. Any other is refused."""
    user: str | None = Field(None, pattern=r"^[A-Za-z0-9_.-]{1,80}$", examples=["bench"])
    """Account, with `password_env`; null with `account_file`."""
    password_env: str | None = Field(None, pattern=r"^[A-Z][A-Z0-9_]{0,63}$", examples=["BENCH_PASSWORD"])
    """Name of the environment variable that holds the password; null with `account_file`."""
    account_file: str | None = Field(None, min_length=1, examples=["~/.benchbook.cnf"])
    """File with the lines `mysql-user="..."` and `mysql-password="..."` (of PostgreSQL `pgsql-user`,
    `pgsql-password`), readable by you alone; null with `user`."""
    tls: Literal["off", "required"] = "off"
    """Encryption of the benchmark's connections, checked on the server; `required` needs `tls_folder`."""
    tls_folder: str | None = Field(None, min_length=1, examples=["~/certificates"])
    """Folder with cacert.pem, client-cert.pem and client-key.pem, sysbench's names; null without TLS."""
    is_shared: bool = False
    """Whether others use the server too: its counters then say nothing of a run, and the report says so."""

    @model_validator(mode="after")
    def _whole(self) -> Existing:
        by_user, by_file = self.user is not None, self.account_file is not None
        if by_user == by_file or by_user != (self.password_env is not None):
            raise ValueError("write either user and password_env, or account_file")
        if (self.tls == "required") != (self.tls_folder is not None):
            raise ValueError("tls: required and tls_folder go together; write both or neither")
        return self


def refused(kind: str, asked: Existing | None, engine: Any, arms: Mapping[str, Any]) -> Iterator[str]:
    """Yield what does not go with the kind of site, as `path.to.key: wrong; what to write`."""
    if (kind == "existing") != (asked is not None):
        yield f"site.existing: goes with kind existing, and kind is {kind}; write both or neither"
    if kind != "existing":
        return
    engines = {"engine": engine} | {
        f"arms.{name}.engine": arm.engine for name, arm in arms.items() if arm.engine
    }
    for place, one in engines.items():
        if one.binary is not None:
            yield f"{place}.binary: names a program, and the server is started by others; remove it"
        if (
            asked is not None
            and asked.tls != "off"
            and traits.engine(one.name or engine.name).driver != traits.MYSQL
        ):
            yield f"site.existing.tls: {asked.tls}: not supported with {place}.name: {one.name}; write off"
