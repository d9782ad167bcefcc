"""A stand-in for ProxySQL's program, which no package registry has: what our module asks of it, no more.

It reads the settings file as ProxySQL's libconfig does, relays bytes to the first server, and answers its
administrator in MySQL's protocol with the variables it took. It does not parse statements or pool sessions.
"""

import asyncio
import re
import struct
import sys
from pathlib import Path

VERSION = "ProxySQL version 2.7.1-16-g1e0d8be, codename Truls"


def packet(number: int, body: bytes) -> bytes:
    return struct.pack("<I", len(body))[:3] + bytes([number]) + body


def text(word: str) -> bytes:
    return bytes([len(word)]) + word.encode()


def column(name: str) -> bytes:
    names = text("def") + text("") * 3 + text(name) * 2
    return names + b"\x0c" + struct.pack("<HIBHB", 33, 255, 253, 0, 0) + b"\0\0"


EOF, OK = b"\xfe\0\0\x02\0", b"\0\0\0\x02\0\0\0"


async def administrate(rows: list[tuple[str, str]], reader, writer) -> None:
    """Let anybody in who greets, and answer every statement with the variables."""
    hello = b"\x0a8.0.0\0" + struct.pack("<I", 1) + b"12345678\0" + struct.pack("<HBHH", 0xA20F, 33, 2, 8)
    writer.write(packet(0, hello + b"\x15" + b"\0" * 10 + b"123456789012\0mysql_native_password\0"))
    is_in = False
    try:
        while True:
            head = await reader.readexactly(4)
            body = await reader.readexactly(int.from_bytes(head[:3], "little"))
            if not is_in:
                is_in = True
                writer.write(packet(head[3] + 1, OK))
            elif body[:1] == b"\x03" and b"global_variables" in body:
                found = [b"\x02", column("variable_name"), column("variable_value"), EOF]
                found += [*(text(name) + text(value) for name, value in rows), EOF]
                writer.write(b"".join(packet(1 + number, one) for number, one in enumerate(found)))
            elif body[:1] == b"\x01":
                break
            else:
                writer.write(packet(1, OK))
    except asyncio.IncompleteReadError:
        pass
    writer.close()


async def relay(host: str, port: int, reader, writer) -> None:
    far_reader, far_writer = await asyncio.open_connection(host, port)

    async def pass_on(source, target) -> None:
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
        target.close()

    await asyncio.gather(pass_on(reader, far_writer), pass_on(far_reader, writer), return_exceptions=True)


async def serve(file: Path) -> None:
    said = re.sub(r'@include "([^"]+)"', lambda match: Path(match[1]).read_text(), file.read_text())
    variables = re.search(r"mysql_variables=\s*\{(.*?)\n\}", said, re.DOTALL)[1]
    rows = re.findall(r"(\w+)=(\S+)", variables)
    host, port = dict(rows)["interfaces"].strip('"').split(":")
    admin = re.search(r'mysql_ifaces="([^:]+):(\d+)"', said)
    behind = re.search(r'address="([^"]+)", port=(\d+)', said)
    rows = [(f"mysql-{name}", value.strip('"')) for name, value in rows]
    await asyncio.start_server(lambda *ends: relay(behind[1], int(behind[2]), *ends), host, int(port))
    listening = await asyncio.start_server(lambda *ends: administrate(rows, *ends), admin[1], int(admin[2]))
    await listening.serve_forever()


if __name__ == "__main__":
    if "--version" in sys.argv:
        print(VERSION)
    else:
        asyncio.run(serve(Path(sys.argv[sys.argv.index("-c") + 1])))
