"""Settings of the connection to ZooKeeper.

Owns: the names, types and defaults of `zookeeper.*` and `password.encoder.*`, and what they mean as
settings of TLS. The login stands in the section `Client` of the JAAS file
(`java.security.auth.login.config`).
"""

from typing import Annotated, Final

from ottla.config.settings import (
    AtLeast,
    Between,
    Doc,
    Matches,
    NoEffect,
    OneOf,
    Settings,
    Type,
    Words,
)
from ottla.config.tls import STORE_TYPES, UNSAFE_VERSIONS, VERSIONS, TlsSettings

_SERVER: Final = r"(\[[0-9A-Fa-f:.]+\]|[^\s,/:\[\]]+)(:[0-9]{1,5})?"
_ENSEMBLE: Final = rf"{_SERVER}(,{_SERVER})*(/[^\s/]+)*/?"
_SOCKETS: Final = (
    "org.apache.zookeeper.ClientCnxnSocketNetty",
    "org.apache.zookeeper.ClientCnxnSocketNIO",
)
KEY_FACTORIES: Final = ("PBKDF2WithHmacSHA512", "PBKDF2WithHmacSHA256", "PBKDF2WithHmacSHA1")
CIPHERS: Final = ("AES/CBC/PKCS5Padding", "AES/GCM/NoPadding")
_REVOCATION: Final = NoEffect("revoked certificates are not looked up")


class ZooKeeperSettings(Settings):
    zookeeper_connect: Annotated[
        str | None,
        Matches(_ENSEMBLE, "host:port[,host:port…][/path]"),
        Doc("ZooKeeper ensemble host:port[,…][/path] of a cluster; not set: the embedded store."),
    ] = None
    zookeeper_session_timeout_ms: Annotated[
        int, AtLeast(1), Doc("Session timeout after which ZooKeeper considers this broker dead.")
    ] = 18_000
    zookeeper_connection_timeout_ms: Annotated[
        int | None,
        AtLeast(1),
        Doc("Longest wait for the store at start; the session's timeout if unset."),
    ] = None
    zookeeper_max_in_flight_requests: Annotated[
        int,
        AtLeast(1),
        Doc("Unanswered requests to ZooKeeper."),
        NoEffect("the number is not limited"),
    ] = 10
    zookeeper_set_acl: Annotated[
        bool, Doc("Nodes that are created get ACLs: only brokers may write, or read credentials.")
    ] = False
    password_encoder_secret: Annotated[
        str | None,
        Type.PASSWORD,
        Doc("Encrypts passwords among the dynamic settings in the metadata store."),
    ] = None
    password_encoder_old_secret: Annotated[
        str | None, Type.PASSWORD, Doc("The one before; passwords encrypted with it are read.")
    ] = None
    password_encoder_keyfactory_algorithm: Annotated[
        str | None, OneOf(("", *KEY_FACTORIES)), Doc("How the key is derived from the secret.")
    ] = None
    password_encoder_cipher_algorithm: Annotated[
        str, OneOf(CIPHERS), Doc("How passwords are encrypted.")
    ] = CIPHERS[0]
    password_encoder_key_length: Annotated[int, Between(128, 256), Doc("Bits of the key.")] = 128
    password_encoder_iterations: Annotated[
        int, Between(1024, 1_000_000), Doc("Rounds of the derivation of the key.")
    ] = 4_096
    zookeeper_ssl_client_enable: Annotated[bool, Doc("Connect to ZooKeeper over TLS.")] = False
    zookeeper_clientCnxnSocket: Annotated[
        str | None,
        OneOf(_SOCKETS),
        NoEffect("zookeeper.ssl.client.enable says whether TLS is used"),
    ] = None
    zookeeper_ssl_keystore_location: Annotated[
        str | None, Doc("File with this broker's key and certificate for ZooKeeper.")
    ] = None
    zookeeper_ssl_keystore_password: Annotated[
        str | None, Type.PASSWORD, Doc("Password of that file, and of the key in it.")
    ] = None
    zookeeper_ssl_keystore_type: Annotated[
        str | None, OneOf(STORE_TYPES), Doc("PEM by the ending .pem, else by the file's content.")
    ] = None
    zookeeper_ssl_truststore_location: Annotated[
        str | None, Doc("File with the authorities that ZooKeeper's certificates are issued by.")
    ] = None
    zookeeper_ssl_truststore_password: Annotated[
        str | None, Type.PASSWORD, Doc("Password of that file.")
    ] = None
    zookeeper_ssl_truststore_type: Annotated[
        str | None, OneOf(STORE_TYPES), Doc("PEM by the ending .pem, else by the file's content.")
    ] = None
    zookeeper_ssl_protocol: Annotated[
        str, NoEffect("zookeeper.ssl.enabled.protocols has the versions")
    ] = "TLSv1.2"
    zookeeper_ssl_enabled_protocols: Annotated[
        Words, OneOf((*VERSIONS, *UNSAFE_VERSIONS)), Doc("Versions of TLS that are accepted.")
    ] = VERSIONS
    zookeeper_ssl_cipher_suites: Annotated[
        Words, Doc("Cipher suites that are accepted, by their Java names; all when empty.")
    ] = ()
    zookeeper_ssl_endpoint_identification_algorithm: Annotated[
        str,
        Matches(r"(?i)(https)?", "https, or empty"),
        Doc("https: the certificate of a server must name its host; empty: it need not."),
    ] = "HTTPS"
    zookeeper_ssl_crl_enable: Annotated[bool, _REVOCATION] = False
    zookeeper_ssl_ocsp_enable: Annotated[bool, _REVOCATION] = False

    @property
    def zookeeper_tls(self) -> TlsSettings:
        """TLS of connections to ZooKeeper."""
        return TlsSettings(
            ssl_keystore_location=self.zookeeper_ssl_keystore_location,
            ssl_keystore_password=self.zookeeper_ssl_keystore_password,
            ssl_key_password=self.zookeeper_ssl_keystore_password,
            ssl_keystore_type=_type(
                self.zookeeper_ssl_keystore_type, self.zookeeper_ssl_keystore_location
            ),
            ssl_truststore_location=self.zookeeper_ssl_truststore_location,
            ssl_truststore_password=self.zookeeper_ssl_truststore_password,
            ssl_truststore_type=_type(
                self.zookeeper_ssl_truststore_type, self.zookeeper_ssl_truststore_location
            ),
            ssl_enabled_protocols=self.zookeeper_ssl_enabled_protocols,
            ssl_cipher_suites=self.zookeeper_ssl_cipher_suites,
            ssl_endpoint_identification_algorithm=(
                self.zookeeper_ssl_endpoint_identification_algorithm
            ),
        )

    def _zookeeper_rules(self) -> str | None:
        for name in ("zookeeper.ssl.crl.enable", "zookeeper.ssl.ocsp.enable"):
            if self.value(name):
                return f"{name}=true: expected false: revoked certificates are not looked up"
        return None


def _type(given: str | None, location: str | None) -> str:
    return given or ("PEM" if (location or "").lower().endswith(".pem") else "JKS")
