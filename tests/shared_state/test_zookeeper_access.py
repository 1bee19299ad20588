"""ZooKeeper over TLS, with a login, with ACLs: a real server, and what is said when it refuses."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from ottla.config.broker import BrokerConfig
from ottla.model.errors import UserError
from ottla.shared_state.zookeeper_access import zookeeper_store
from ottla.store import paths
from ottla.store.port import Session, StoreUnavailable
from ottla.store.zookeeper import ZooKeeperStore
from ottla.store.zookeeper_connection import ZooKeeperSecurity
from tests.fakes.certificates import certificates
from tests.store.zookeeper_server import Server, zookeeper_server
from tools.nodes import free_ports

pytestmark = pytest.mark.spec("SEC-10")

DIGEST = "org.apache.zookeeper.server.auth.DigestLoginModule"
NETTY = "org.apache.zookeeper.server.NettyServerCnxnFactory"
PASSWORD = "planted-password"
SESSION_MS = 4_000


class Secured(NamedTuple):
    server: Server
    tls_port: int
    folder: Path

    def jaas(self, password: str = PASSWORD) -> str:
        """A file whose name tells of its password."""
        file = self.folder / f"client-{password}.conf"
        file.write_text(f'Client {{ {DIGEST} required username="kafka" password="{password}"; }};')
        return str(file)

    def settings(self, **more: str) -> dict[str, str]:
        return {
            "zookeeper.connect": f"localhost:{self.tls_port}/brokers-of-a-test",
            "zookeeper.session.timeout.ms": str(SESSION_MS),
            "zookeeper.connection.timeout.ms": "3000",
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
            "zookeeper.ssl.truststore.location": str(self.folder / "ca.pem"),
            "java.security.auth.login.config": self.jaas(),
            "zookeeper.set.acl": "true",
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    def store(self, **more: str) -> ZooKeeperStore:
        store = zookeeper_store(BrokerConfig.parse(self.settings(**more)))
        assert isinstance(store, ZooKeeperStore)
        return store


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    made = certificates()
    (folder / "ca.pem").write_bytes(made.authority.certificate_pem())
    (folder / "other.pem").write_bytes(made.other_authority.certificate_pem())
    for name in ("broker", "alice"):
        issued = getattr(made, name)
        (folder / f"{name}.pem").write_bytes(issued.key_pem() + issued.certificate_pem())
    jaas = folder / "server.conf"
    jaas.write_text(f'Server {{ {DIGEST} required user_kafka="{PASSWORD}"; }};')
    [tls_port] = free_ports(1)
    data = folder / "data"
    data.mkdir()
    more = (
        f"secureClientPort={tls_port}\nserverCnxnFactory={NETTY}\n"
        f"ssl.keyStore.location={folder}/broker.pem\nssl.trustStore.location={folder}/ca.pem\n"
        "ssl.clientAuth=want\n"
        "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"
        "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider\n"
    )
    options = [f"-Djava.security.auth.login.config={jaas}"]
    with zookeeper_server(data, more, options) as server:
        server.wait_until_it_serves()
        yield Secured(server, tls_port, folder)


@pytest.fixture
def stranger(secured: Secured) -> Iterator[KazooClient]:
    """Somebody who reaches the ensemble and has no login."""
    client = KazooClient(hosts=secured.server.address)
    client.start()
    client.chroot = "/brokers-of-a-test"
    yield client
    client.stop()
    client.close()


@pytest.mark.real_loop
async def test_nodes_belong_to_the_brokers_and_credentials_are_read_by_nobody_else(
    secured: Secured, stranger: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("ottla.store.zookeeper_connection.kazoo").setLevel(1)

    def look() -> None:
        assert stranger.get("/controller")[0] == b"{}"
        with pytest.raises(NoAuthError):
            stranger.get(f"{paths.CONFIG_USERS}/alice")
        with pytest.raises(NoAuthError):
            stranger.set("/controller", b"mine")
        with pytest.raises(NoAuthError):
            stranger.create("/config/mine")
        [acl, everybody] = stranger.get_acls("/controller")[0]
        assert (acl.id.scheme, acl.id.id) == ("sasl", "kafka")
        assert (everybody.id.scheme, everybody.acl_list) == ("world", ["READ"])

    store = secured.store()
    await store.start()
    await store.create("/config")
    await store.create(paths.CONFIG_USERS)
    await store.create(f"{paths.CONFIG_USERS}/alice", b"planted-credential")
    await store.create("/controller", b"{}", ephemeral=True)
    nodes = [await store.get(f"{paths.CONFIG_USERS}/alice") for _ in range(200)]
    assert {node.data for node in nodes if node} == {b"planted-credential"}
    await asyncio.to_thread(look)
    await store.close()
    assert PASSWORD not in caplog.text
    assert "planted-credential" not in caplog.text


SECRET_PATHS = (
    "/config/users",
    "/config/users/alice",
    "/config/users/alice/clients/app",
    "/config/brokers",
    "/config/brokers/0",
    "/config/brokers/<default>",
    "/delegation_token/tokens",
    "/delegation_token/tokens/an-id",
    "/cluster/scram_secret",
)
"""Of credentials, of passwords among brokers' settings, of tokens, and what salts are made of."""
PUBLIC_PATHS = ("/controller", "/config/topics/t", "/brokers/ids/0", "/kafka-acl/Topic/t")


@pytest.mark.parametrize("path", SECRET_PATHS)
def test_what_is_secret_is_readable_by_the_brokers_alone(path: str) -> None:
    [acl] = ZooKeeperSecurity(with_acls=True).acl(path)
    assert (acl.id.scheme, acl.acl_list) == ("auth", ["ALL"])


@pytest.mark.parametrize("path", PUBLIC_PATHS)
def test_what_is_not_secret_is_changed_by_the_brokers_alone(path: str) -> None:
    owner, everybody = ZooKeeperSecurity(with_acls=True).acl(path)
    assert (owner.id.scheme, owner.acl_list) == ("auth", ["ALL"])
    assert (everybody.id.scheme, everybody.acl_list) == ("world", ["READ"])


@pytest.mark.real_loop
async def test_no_secret_of_a_cluster_can_be_read_without_a_login(secured: Secured) -> None:
    store = secured.store(zookeeper_connect=f"localhost:{secured.tls_port}/secrets")
    await store.start()
    for path in SECRET_PATHS:
        for above in paths.ancestors(path):
            if await store.get(above) is None:
                await store.create(above)
        await store.create(path, b"planted")

    def look() -> None:
        client = KazooClient(hosts=secured.server.address)
        client.start()
        client.chroot = "/secrets"
        for path in SECRET_PATHS:
            with pytest.raises(NoAuthError):
                client.get(path)
            with pytest.raises(NoAuthError):
                client.set(path, b"mine")
        client.stop()
        client.close()

    await asyncio.to_thread(look)
    await store.close()


@pytest.mark.real_loop
async def test_a_certificate_is_an_identity_as_well(secured: Secured) -> None:
    without_login = BrokerConfig.parse(
        {
            **secured.settings(
                zookeeper_ssl_keystore_location=str(secured.folder / "alice.pem"),
                zookeeper_connect=f"localhost:{secured.tls_port}/by-certificate",
            ),
            "java.security.auth.login.config": "",
        }
    )
    store = zookeeper_store(without_login)
    await store.start()
    await store.create("/mine")
    await store.close()
    client = KazooClient(hosts=secured.server.address)
    client.start()
    owners = {acl.id.scheme: acl.id.id for acl in client.get_acls("/by-certificate/mine")[0]}
    assert owners["x509"] == "CN=alice"
    client.stop()
    client.close()


@pytest.mark.real_loop
async def test_a_connection_that_breaks_is_opened_and_logged_in_again(secured: Secured) -> None:
    store = secured.store()
    states: asyncio.Queue[Session] = asyncio.Queue()
    store.on_session(states.put_nowait)
    await store.start()
    secured.server.kill()
    await _until(states, Session.SUSPENDED)
    secured.server.start_again()
    async with asyncio.timeout(60):
        while True:  # the server forgets the session if it is away for too long
            state = await states.get()
            if state is Session.EXPIRED:
                await _started(store)
            elif state is not Session.CONNECTED:
                continue
            break
    assert await store.children("/") is not None
    await store.close()
    secured.server.wait_until_it_serves()


async def _until(states: asyncio.Queue[Session], wanted: Session) -> None:
    async with asyncio.timeout(60):
        while await states.get() is not wanted:
            pass


async def _started(store: ZooKeeperStore) -> None:
    while True:
        try:
            await store.start()
            return
        except StoreUnavailable:
            continue


REFUSED = [
    ({"zookeeper.ssl.truststore.location": "{folder}/other.pem"}, "unknown authority"),
    ({"zookeeper.connect": "127.0.0.2:{port}"}, "host name mismatch"),
    ({"zookeeper.ssl.client.enable": "false"}, "no reply within 3 s"),
    ({"java.security.auth.login.config": "{wrong}"}, "refused the login of kafka"),
]


@pytest.mark.real_loop
async def test_what_is_wrong_is_said_within_the_connection_timeout(secured: Secured) -> None:
    async def refused(change: dict[str, str], text: str) -> None:
        values = {
            name: value.format(
                folder=secured.folder, port=secured.tls_port, wrong=secured.jaas("wrong")
            )
            for name, value in change.items()
        }
        store = zookeeper_store(BrokerConfig.parse({**secured.settings(), **values}))
        with pytest.raises(StoreUnavailable, match=text) as error:
            await store.start()
        assert PASSWORD not in str(error.value)
        await store.close()

    await asyncio.gather(*(refused(change, text) for change, text in REFUSED))


MISTAKES = [
    ({"zookeeper.set.acl": "true"}, "zookeeper.set.acl=true needs an identity"),
    (
        {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.keystore.location": "/no/such.pem",
        },
        r"zookeeper\.ssl\.keystore\.location=/no/such\.pem",
    ),
    ({"java.security.auth.login.config": "/no/such"}, "No such file"),
    ({"zookeeper.ssl.ocsp.enable": "true"}, "zookeeper.ssl.ocsp.enable=true: expected false"),
]


@pytest.mark.parametrize(("settings", "text"), MISTAKES)
def test_a_mistake_in_the_settings_is_named_before_anything_is_connected(
    settings: dict[str, str], text: str
) -> None:
    with pytest.raises(UserError, match=text):
        zookeeper_store(BrokerConfig.parse({"zookeeper.connect": "localhost:1", **settings}))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ('username="kafka"', "section Client needs username and password"),
        ('username="kafka" password="x"; org.example.Evil required', "unsupported login module"),
    ],
)
def test_a_client_section_that_cannot_be_used_is_refused(
    options: str, text: str, tmp_path: Path
) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(f"Client {{ {DIGEST} required {options}; }};")
    settings = {"zookeeper.connect": "localhost:1", "java.security.auth.login.config": str(file)}
    with pytest.raises(UserError, match=text):
        zookeeper_store(BrokerConfig.parse(settings))


def test_without_kazoo_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ottla.store.zookeeper", None)
    with pytest.raises(UserError, match=r"pip install 'ottla\[cluster\]'"):
        zookeeper_store(BrokerConfig.parse({"zookeeper.connect": "zk1:2181,zk2:2181/ottla"}))
