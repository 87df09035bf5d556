"""Certificates made for one test, and a door with TLS before a server that has none."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Certificate:
    """`authority` signed `chain`, which holds for 127.0.0.1 alone and belongs to `key`."""

    authority: Path
    chain: Path
    key: Path


def certificate(folder: Path) -> Certificate:
    folder.mkdir()
    root, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"made for a test in {folder.name}")])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = Certificate(folder / "authority.pem", folder / "chain.pem", folder / "key.pem")
    signed = {
        made.authority: _begun(authority, authority, root).add_extension(x509.BasicConstraints(True, None), True),
        made.chain: _begun(x509.Name([]), authority, own).add_extension(here, True),
    }
    for path, builder in signed.items():
        path.write_bytes(builder.sign(root, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(
        own.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    made.key.chmod(0o600)
    return made


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )


@dataclass(slots=True)
class Door:
    """`taken` counts the connections that got through; `cut` ends those that are open."""

    port: int = 0
    taken: int = 0
    _open: list[asyncio.StreamWriter] = field(default_factory=list)

    def cut(self) -> None:
        while self._open:
            self._open.pop().transport.abort()


@asynccontextmanager
async def door(certificate: Certificate, port: int) -> AsyncIterator[Door]:
    """Leads to `port` on this machine."""
    here = Door()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def enter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        here.taken += 1
        beyond, back = await asyncio.open_connection("127.0.0.1", port)
        here._open += [writer, back]
        with suppress(asyncio.CancelledError):  # the test is over
            await asyncio.gather(pass_on(reader, back), pass_on(beyond, writer))

    server = await asyncio.start_server(enter, "127.0.0.1", 0, ssl=context)
    here.port = server.sockets[0].getsockname()[1]
    try:
        yield here
    finally:
        server.close()
        here.cut()
