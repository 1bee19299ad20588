"""Settings of TLS, the same for brokers and clients.

Owns: the names, types and defaults of `ssl.*`. Never reads a file: `security/tls` does.
"""

from typing import Annotated, Final

from ottla.config.settings import Doc, Dynamic, Matches, NoEffect, OneOf, Settings, Type, Words

_JAVA: Final = NoEffect("OpenSSL is used, not a Java security provider")
STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")
VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
UNSAFE_VERSIONS: Final = ("TLSv1.1", "TLSv1", "SSLv3", "SSLv2Hello")
"""Existing configurations name them beside safe ones; they are left out, as Java 17 does."""


class TlsSettings(Settings):
    ssl_protocol: Annotated[
        str,
        OneOf(("TLS", "SSL", *VERSIONS, *UNSAFE_VERSIONS)),
        Dynamic("broker"),
        NoEffect("ssl.enabled.protocols has the versions"),
    ] = "TLSv1.3"
    ssl_enabled_protocols: Annotated[
        Words,
        OneOf((*VERSIONS, *UNSAFE_VERSIONS)),
        Dynamic("broker"),
        Doc("Versions of TLS that are accepted; older ones are unsafe and not offered."),
    ] = VERSIONS
    ssl_cipher_suites: Annotated[
        Words,
        Dynamic("broker"),
        Doc("Cipher suites that are accepted, by their Java names; all secure ones when empty."),
    ] = ()
    ssl_keystore_type: Annotated[
        str,
        OneOf(STORE_TYPES),
        Dynamic("broker"),
        Doc("PEM, or a key store file, whose format is recognised by its content."),
    ] = "JKS"
    ssl_keystore_location: Annotated[
        str | None, Dynamic("broker"), Doc("File with the private key and its certificates.")
    ] = None
    ssl_keystore_password: Annotated[
        str | None, Type.PASSWORD, Dynamic("broker"), Doc("Password of the key store file.")
    ] = None
    ssl_key_password: Annotated[
        str | None, Type.PASSWORD, Dynamic("broker"), Doc("Password of the private key.")
    ] = None
    ssl_keystore_key: Annotated[
        str | None,
        Type.PASSWORD,
        Dynamic("broker"),
        Doc("Private key as PEM, instead of a file; PKCS #8, encrypted or not."),
    ] = None
    ssl_keystore_certificate_chain: Annotated[
        str | None,
        Type.PASSWORD,
        Dynamic("broker"),
        Doc("Certificate and its issuers as PEM, instead of a file."),
    ] = None
    ssl_truststore_type: Annotated[
        str,
        OneOf(STORE_TYPES),
        Dynamic("broker"),
        Doc("PEM, or a trust store file, whose format is recognised by its content."),
    ] = "JKS"
    ssl_truststore_location: Annotated[
        str | None, Dynamic("broker"), Doc("File with the certificates of trusted authorities.")
    ] = None
    ssl_truststore_password: Annotated[
        str | None, Type.PASSWORD, Dynamic("broker"), Doc("Password of the trust store file.")
    ] = None
    ssl_truststore_certificates: Annotated[
        str | None,
        Type.PASSWORD,
        Dynamic("broker"),
        Doc("Certificates of trusted authorities as PEM, instead of a file."),
    ] = None
    ssl_endpoint_identification_algorithm: Annotated[
        str,
        Matches(r"(?i)(https)?", "https, or empty"),
        Dynamic("broker"),
        Doc("https: the certificate of a broker must name its host; empty: it need not."),
    ] = "https"
    ssl_provider: Annotated[str | None, Dynamic("broker"), _JAVA] = None
    ssl_keymanager_algorithm: Annotated[str, Dynamic("broker"), _JAVA] = "SunX509"
    ssl_trustmanager_algorithm: Annotated[str, Dynamic("broker"), _JAVA] = "PKIX"
    ssl_secure_random_implementation: Annotated[str | None, Dynamic("broker"), _JAVA] = None
