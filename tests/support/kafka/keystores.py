"""Certificates of a broker, and of a client in every supported form."""

from __future__ import annotations

from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

from caughtup.demo.cluster.broker_config import Tls

PASSWORD = "of the store: hunter2"


def broker_files(directory: Path) -> Tls:
    """Write a certificate for 127.0.0.1, its key as Kafka reads it, and its authority."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    files = Tls(directory / "chain.pem", directory / "key.pem", directory / "authority.pem")
    files.certificate_chain.write_bytes(
        b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    )
    files.private_key.write_bytes(as_pkcs8(certificate.private_key_pem.bytes()))
    authority.cert_pem.write_to_path(files.authority)
    return files


def as_pkcs8(key: bytes) -> bytes:
    """Return a private key as Kafka and its Java client read it."""
    private = load_pem_private_key(key, None)
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def client_files(issued: trustme.LeafCert, directory: Path) -> tuple[Path, Path]:
    """Write the certificate's chain and its key, and return their paths."""
    chain, key = directory / "client.crt", directory / "client.key"
    chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(key)
    return chain, key


def keystore(issued: trustme.LeafCert, directory: Path, password: str = PASSWORD) -> Path:
    """Write key and certificates as PKCS #12, and return the path."""
    path = directory / "client.p12"
    chain = [load_pem_x509_certificate(blob.bytes()) for blob in issued.cert_chain_pems]
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"caughtup",
            load_pem_private_key(issued.private_key_pem.bytes(), None),  # type: ignore[arg-type]
            chain[0],
            chain[1:],
            BestAvailableEncryption(password.encode()),
        )
    )
    return path


def client_forms(issued: trustme.LeafCert, directory: Path) -> dict[str, dict[str, str]]:
    """Return the properties of each form, by the form's name."""
    chain, key = client_files(issued, directory)
    return {
        "PEM files": {"ssl.certificate.location": str(chain), "ssl.key.location": str(key)},
        "inline PEM": {"ssl.certificate.pem": chain.read_text(), "ssl.key.pem": key.read_text()},
        "PKCS #12": {
            "ssl.keystore.location": str(keystore(issued, directory)),
            "ssl.keystore.password": PASSWORD,
        },
    }
