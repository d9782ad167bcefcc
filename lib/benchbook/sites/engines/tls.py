"""TLS between client and server on hosts: certificates of our own, and a session that we open there."""

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import Any, Self

from benchbook.sites import workspace as labs
from benchbook.sites.machine.contract import Far

# The names under which sysbench looks for them in the folder that it is started in.
CA, CERTIFICATE, KEY = "cacert.pem", "client-cert.pem", "client-key.pem"
DAYS = 30
FOLDER = "secrets/tls"
PIECE = 1 << 16


def prepare_folder(lab: labs.Lab) -> Path:
    """Folder of a lab's certificates, readable by us alone; made at need, and anew in time."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.x509.oid import NameOID

    place = lab.folder / FOLDER
    if (place / KEY).is_file():
        ends = x509.load_pem_x509_certificate((place / CA).read_bytes()).not_valid_after_utc
        if ends >= datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=DAYS / 2):
            return place
    for name in ("secrets", FOLDER):
        lab.private_folder(name, None)
    # An authority signs two certificates and is then forgotten.
    # Every TLS library that a sysbench may have been built with knows RSA.
    keys = {name: rsa.generate_private_key(65537, 2048) for name in ("authority", "server", "client")}
    names = {name: x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"benchbook {name}")]) for name in keys}
    now = datetime.datetime.now(datetime.UTC)
    local = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    for name, key in keys.items():
        signed = (
            x509.CertificateBuilder(names["authority"], names[name], key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=DAYS))
            .add_extension(x509.BasicConstraints(ca=name == "authority", path_length=None), critical=True)
            .add_extension(local, critical=False)
            .sign(keys["authority"], hashes.SHA256())
        )
        file = CA if name == "authority" else f"{name}-cert.pem"
        labs.write_private(place / file, signed.public_bytes(serialization.Encoding.PEM).decode("ascii"))
        if name != "authority":
            text = key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
            # Last, so that what is found whole is whole.
            labs.write_private(place / f"{name}-key.pem", text.decode("ascii"))
    return place


def read_client(lab: labs.Lab) -> dict[str, str]:
    """Files that a client needs, by name."""
    return {name: (prepare_folder(lab) / name).read_text(encoding="ascii") for name in (CA, CERTIFICATE, KEY)}


def read_server(lab: labs.Lab) -> dict[str, str]:
    """Files that a server needs, by name."""
    place = prepare_folder(lab)
    names = {"ca.pem": CA, "cert.pem": "server-cert.pem", "key.pem": "server-key.pem"}
    return {name: (place / ours).read_text(encoding="ascii") for name, ours in names.items()}


class FarContext(ssl.SSLContext):
    """Opener of our sessions with TLS over a connection that a host holds for us."""

    def __new__(cls, lab: labs.Lab) -> Self:
        far_context = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        far_context.check_hostname = False
        place = prepare_folder(lab)
        far_context.load_verify_locations(str(place / CA))
        far_context.load_cert_chain(str(place / CERTIFICATE), str(place / KEY))
        return far_context

    def wrap_socket(self, sock: Any, *inputs: Any, **how: Any) -> Any:
        return _FarTls(self, sock)


class _FarTls(Far):
    def __init__(self, context: ssl.SSLContext, raw: Any) -> None:
        self._raw, self._in, self._out = raw, ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._in, self._out)
        self._work(self._session.do_handshake)

    def sendall(self, data: bytes) -> None:
        self._work(lambda: self._session.write(data))

    def settimeout(self, seconds: float | None) -> None:
        self._raw.settimeout(seconds)

    def close(self) -> None:
        self._raw.close()

    def receive(self) -> bytes:
        return bytes(self._work(lambda: self._session.read(PIECE)))

    def _work(self, do: Any) -> Any:
        while True:
            try:
                result, is_done = do(), True
            except ssl.SSLWantReadError:
                result, is_done = None, False
            except ssl.SSLZeroReturnError:
                return b""
            if reported_content := self._out.read():
                self._raw.sendall(reported_content)
            if is_done:
                return result
            data = self._raw.receive()
            if not data:
                raise ConnectionError("the other side ended it")
            self._in.write(data)
