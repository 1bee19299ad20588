"""Keys of OAUTHBEARER that a broker reads over https, and tokens that clients get there."""

from __future__ import annotations

import base64
import itertools
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import ottla
from ottla.client.admin import Resource
from ottla.model.errors import AuthenticationFailed, UserError
from ottla.testing import Broker
from tests.cluster.process import wait_for
from tests.fakes.certificates import certificates
from tests.fakes.token_issuer import HttpsHost, SigningKey, document

OLD, NEW, WRONG = SigningKey("old"), SigningKey("new"), SigningKey("old")
KEYS: Final = "/keys"
NESTED: Final = b'{"keys":[' + b"[" * 200_000
TEN_MINUTES_MS: Final = 600_000
BAD_ANSWERS: Final[dict[str, bytes]] = {
    "an id that is a list": document({"keys": [{**OLD.entry, "kid": ["old"]}]}),
    "an id that is an object": document({"keys": [{**OLD.entry, "kid": {"old": 1}}]}),
    "a deeply nested document": document(NESTED),
    "a garbage status": b"\x16\x03\x01 garbage \xff\xff\r\n\r\n",
    "an empty answer": b"",
    "an endless header": b"HTTP/1.1 200 OK\r\nx: " + b"x" * 100_000,
    "a failure with a long reason": b"HTTP/1.1 500 " + b"oh " * 10_000 + b"\r\n\r\n",
    "a cut body": document({"keys": [OLD.entry]})[:-40],
    "a document that is no object": document([OLD.entry]),
    "101 keys": document({"keys": [{**OLD.entry, "kid": str(number)} for number in range(101)]}),
    "no keys": document({"keys": []}),
    "keys that are no objects": document({"keys": ["old", None, 7]}),
    "bytes that are no text": document(b"\xff\xfe\xfd"),
    "a redirect": b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n\r\n",
}


def settings(host: HttpsHost, refresh_ms: int = 1) -> dict[str, str]:
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,CLIENTS://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": host.address + KEYS,
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": str(refresh_ms),
        "sasl.oauthbearer.allowed.urls": host.address + KEYS,
        "connection.failed.authentication.delay.ms": "0",
    }


class Refreshed:
    """A broker that reads its keys again when it is told to."""

    def __init__(self, broker: Broker, host: HttpsHost) -> None:
        self._plain, self._clients = broker.bootstrap_servers.split(",")
        self._host = host
        self._values = itertools.count(15_000)

    def refresh(self, times: int = 1) -> None:
        """Returns when the keys have been read that often."""
        with ottla.Admin(bootstrap_servers=self._plain) as admin:
            for _ in range(times):
                read = self._host.request_count(KEYS)
                change = {"log.cleaner.backoff.ms": str(next(self._values))}
                admin.incremental_alter_configs({Resource.broker(0): change}).all()
                wait_for(lambda read=read: self._host.request_count(KEYS) > read)  # type: ignore[misc]

    def lets_in(self, key: SigningKey) -> bool:
        """Whether a client with a token of this key is let in."""
        config = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token": key.token(),
        }
        try:
            with ottla.Admin(bootstrap_servers=self._clients, config=config) as admin:
                admin.list_topics()
        except AuthenticationFailed:
            return False
        return True


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpsHost]:
    with HttpsHost(tmp_path) as running:
        monkeypatch.setenv("SSL_CERT_FILE", str(running.authority_file))
        running.answers[KEYS] = document({"keys": [OLD.entry]})
        yield running


@pytest.mark.spec("SEC-05")
def test_a_bad_answer_instead_of_keys_leaves_the_old_ones_and_says_so_once(
    host: HttpsHost, caplog: pytest.LogCaptureFixture
) -> None:
    with Broker(settings(host)) as broker:
        refreshed = Refreshed(broker, host)
        for name, answer in BAD_ANSWERS.items():
            host.answers[KEYS] = answer
            caplog.clear()
            refreshed.refresh(3)
            assert refreshed.lets_in(OLD), name
            host.answers[KEYS] = document({"keys": [OLD.entry]})
            refreshed.refresh(2)  # the error, if any, is over
            errors = [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]
            assert len(errors) == 1, (name, errors)
            assert "keeping the security settings in force: cannot read the keys" in errors[0]
            assert len(errors[0]) < 400, name
    assert host.request_count("/elsewhere") == 0


@pytest.mark.spec("SEC-05")
def test_a_key_among_others_that_are_malformed_is_used(host: HttpsHost) -> None:
    others = [{**NEW.entry, "kid": ["new"]}, None, "text", {**NEW.entry, "use": "enc"}]
    host.answers[KEYS] = document({"keys": [*others, OLD.entry]})
    with Broker(settings(host)) as broker:
        refreshed = Refreshed(broker, host)
        assert refreshed.lets_in(OLD)
        assert not refreshed.lets_in(NEW)


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize(("audience", "warnings"), [("", 1), ("kafka", 0)])
def test_a_listener_that_takes_tokens_for_any_service_says_so_once(
    host: HttpsHost, caplog: pytest.LogCaptureFixture, audience: str, warnings: int
) -> None:
    """As Apache Kafka does, it takes them: the settings of a Kafka must go on working."""
    with Broker(settings(host) | {"sasl.oauthbearer.expected.audience": audience}) as broker:
        Refreshed(broker, host).refresh(2)
    said = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert sum("expected.audience is not set" in line for line in said) == warnings


@pytest.mark.spec("SEC-05")
def test_keys_that_are_rotated_are_in_force_after_the_refresh(host: HttpsHost) -> None:
    with Broker(settings(host)) as broker:
        refreshed = Refreshed(broker, host)
        assert refreshed.lets_in(OLD)
        assert not refreshed.lets_in(WRONG)
        assert not refreshed.lets_in(NEW)
        host.answers[KEYS] = document({"keys": [OLD.entry, NEW.entry]})
        refreshed.refresh(2)
        assert refreshed.lets_in(OLD)
        assert refreshed.lets_in(NEW)
        host.answers[KEYS] = document({"keys": [NEW.entry]})
        refreshed.refresh(2)
        assert not refreshed.lets_in(OLD)
        assert refreshed.lets_in(NEW)


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize("allowed", ["", "https://localhost/keys"])
def test_a_broker_does_not_start_with_an_address_of_keys_that_is_not_allowed(
    host: HttpsHost, allowed: str
) -> None:
    refused = settings(host) | {"sasl.oauthbearer.allowed.urls": allowed}
    text = r"not allowed; add it to sasl\.oauthbearer\.allowed\.urls"
    with pytest.raises(UserError, match=text), Broker(refused):
        pass
    assert host.requests == []


@pytest.mark.spec("SEC-05")
def test_a_broker_does_not_start_with_keys_of_a_host_that_it_does_not_trust(
    host: HttpsHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(certificates().other_authority.certificate_pem())
    monkeypatch.setenv("SSL_CERT_FILE", str(other))
    text = "cannot read the keys of OAUTHBEARER"
    with pytest.raises(UserError, match=text), Broker(settings(host)):
        pass
    assert host.requests == []


TOKENS: Final = "/token"
SECRET: Final = "planted-secret"
BEARER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
WITHOUT_TOKEN: Final[dict[str, bytes]] = {
    "a redirect": b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n\r\n",
    "a refusal": b"HTTP/1.1 401 Unauthorized\r\n\r\n" + SECRET.encode(),
    "a garbage status": SECRET.encode() + b"\r\n\r\n",
    "no token": document({"error": SECRET}),
}


CREDENTIALS: Final[dict[str, dict[str, str]]] = {
    "a JAAS line": {
        "sasl.jaas.config": f'{BEARER} clientId="job" clientSecret="{SECRET}" scope="logs";'
    },
    "settings": {
        "sasl.oauthbearer.client.credentials.client.id": "job",
        "sasl.oauthbearer.client.credentials.client.secret": SECRET,
        "sasl.oauthbearer.scope": "logs",
    },
    "both": {
        "sasl.jaas.config": f'{BEARER} clientId="old" clientSecret="{SECRET}" scope="all";',
        "sasl.oauthbearer.client.credentials.client.id": "job",
        "sasl.oauthbearer.scope": "logs",
    },
}


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize("credentials", CREDENTIALS)
def test_a_client_gets_its_token_over_https_and_no_secret_stands_in_an_error(
    host: HttpsHost, caplog: pytest.LogCaptureFixture, credentials: str
) -> None:
    caplog.set_level(logging.DEBUG)
    config = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": host.address + TOKENS,
        "sasl.oauthbearer.allowed.urls": host.address + TOKENS,
        **CREDENTIALS[credentials],
        "default.api.timeout.ms": 1_000,
    }
    with Broker(settings(host)) as broker:
        clients = broker.bootstrap_servers.split(",")[1]
        host.answers[TOKENS] = document({"access_token": OLD.token()})
        with ottla.Admin(bootstrap_servers=clients, config=config) as admin:
            admin.create_topic("orders")
        for name, answer in WITHOUT_TOKEN.items():
            host.answers[TOKENS] = answer
            with (
                pytest.raises((AuthenticationFailed, OSError)) as failed,
                ottla.Admin(bootstrap_servers=clients, config=config) as admin,
            ):
                admin.list_topics()
            assert TOKENS in str(failed.value), name
            assert SECRET not in str(failed.value), name
    asked = next(request for request in host.requests if TOKENS.encode() in request)
    assert asked.startswith(b"POST /token ")
    pair = base64.b64encode(f"job:{SECRET}".encode())
    assert b"Authorization: Basic " + pair in asked
    assert asked.endswith(b"grant_type=client_credentials&scope=logs")
    assert host.request_count("/elsewhere") == 0
    assert SECRET not in caplog.text
