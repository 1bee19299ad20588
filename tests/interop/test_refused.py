"""What other people's clients hear where access rules keep them out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import confluent_kafka as ck
import kafka.errors
import pytest
from kafka import KafkaConsumer, KafkaProducer

import ottla
from ottla.model.errors import ErrorCode
from ottla.testing import Broker

WITHIN_S = 30.0
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker on which all may use all but what is somebody else's."""
    with Broker(SETTINGS) as broker:
        where = broker.bootstrap_servers
        with ottla.Admin(bootstrap_servers=where) as admin:
            admin.create_topic("open")
            admin.create_topic("theirs")
            admin.create_acls(
                [
                    ottla.AclRule.allow("User:them", "all", "topic", "theirs"),
                    ottla.AclRule.allow("User:them", "all", "group", "theirs"),
                    ottla.AclRule.allow("User:*", "write", "transactional_id", "prepared"),
                    ottla.AclRule.allow("User:them", "all", "transactional_id", "theirs"),
                ]
            ).all()
        yield where


@pytest.mark.spec("SEC-04")
def test_confluents_producer_and_consumer_hear_what_they_may_not(bootstrap: str) -> None:
    heard: list[object] = []
    producer = ck.Producer({"bootstrap.servers": bootstrap})
    for topic in ("open", "theirs"):
        producer.produce(topic, b"v", on_delivery=lambda error, _: heard.append(error))
        producer.flush(WITHIN_S)
    done, refused = heard
    assert done is None
    assert isinstance(refused, ck.KafkaError)
    assert refused.code() == ck.KafkaError.TOPIC_AUTHORIZATION_FAILED
    consumer = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": "theirs"})
    consumer.subscribe(["open"])
    message = consumer.poll(WITHIN_S)
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.code() == ck.KafkaError.GROUP_AUTHORIZATION_FAILED
    consumer.close()


@pytest.mark.spec("SEC-04")
def test_confluents_transactions_need_their_id(bootstrap: str) -> None:
    producer = ck.Producer({"bootstrap.servers": bootstrap, "transactional.id": "theirs"})
    with pytest.raises(ck.KafkaException) as refused:
        producer.init_transactions(WITHIN_S)
    code = ck.KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert refused.value.args[0].code() == code


@pytest.mark.spec("SEC-04")
def test_kafka_python_hears_what_it_may_not(bootstrap: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    try:
        producer.send("open", b"v").get(WITHIN_S)
        with pytest.raises(kafka.errors.TopicAuthorizationFailedError):
            producer.send("theirs", b"v").get(WITHIN_S)
    finally:
        producer.close()
    consumer = KafkaConsumer("open", bootstrap_servers=bootstrap, group_id="theirs")
    try:
        with pytest.raises(kafka.errors.GroupAuthorizationFailedError):
            consumer.poll(WITHIN_S * 1_000)
    finally:
        consumer.close()


@pytest.mark.spec("SEC-04", "TXN-29")
def test_our_own_client_prepares_transactions_only_where_it_may(bootstrap: str) -> None:
    named: dict[str, Any] = {"bootstrap_servers": bootstrap, "transactional_id": "prepared"}
    with ottla.Producer(**named) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("open", b"kept")
    with ottla.Producer(**named, transaction_two_phase_commit_enable=True) as producer:
        with pytest.raises(ottla.KafkaError) as refused:
            producer.init_transactions()
        assert refused.value.code is ErrorCode.transactional_id_authorization_failed
