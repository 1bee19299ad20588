"""What may be done is done, and the rest of the same request is refused, or not told."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.api import (
    add_partitions_to_txn,
    consumer_group_describe,
    delete_topics,
    describe_transactions,
    fetch,
    init_producer_id,
    metadata,
    offset_commit,
    produce,
)
from ottla.api.fast_path.produce import FastProduce
from ottla.model.errors import ErrorCode as E
from ottla.model.ids import NO_TOPIC_ID, TopicPartition
from ottla.security.acl import CLUSTER_NAME, Kind, Permission
from ottla.security.acl import Operation as O
from tests.api.allowed import (
    CLUSTER_NO,
    ON_CLUSTER,
    ON_GROUP,
    ON_TOPIC,
    TOPIC_NO,
    TXN_NO,
    Guarded,
    cluster,
    control,
    data,
    group,
    rule,
    topic,
    txn,
)
from tests.api.allowed_control import metadata_fields
from tests.api.allowed_groups import COMMIT, beat
from tests.api.allowed_txns import TXN, begin
from tests.raw_requests import batch, fetch_fields, produce_fields

pytestmark = pytest.mark.spec("SEC-04")

PLAIN = 9
"""A version of Produce by name."""
BY_NAME = 12
"""A version of Fetch by name."""


def two(fields: dict[str, Any], key: str, name: str) -> dict[str, Any]:
    """The same once more, for the topic `u`, in front."""
    [one] = fields[key]
    return {**fields, key: [{**one, name: "u"}, one]}


def produced(said: Any) -> dict[str, E]:
    return {one.name: one.partition_responses[0].error_code for one in said.responses}


async def write(broker: Guarded, **more: Any) -> dict[str, E]:
    fields = produce_fields("t", batch("x", **more.pop("header", {})))
    doubled = two({**fields, **more}, "topic_data", "name")
    return produced(await broker.somebody.ask(produce.API, PLAIN, **doubled))


async def test_a_produce_is_refused_for_the_one_topic_and_done_for_the_other() -> None:
    async with data() as broker:
        broker.may(topic(O.WRITE))
        assert await write(broker) == {"u": TOPIC_NO, "t": E.none}
        log = broker.services.replicas.hosted.get(TopicPartition("t", 0)).log
        assert log.end_offset == 1


@pytest.mark.spec("SEC-03")
async def test_a_permission_holds_for_whom_and_where_it_was_given() -> None:
    async with data() as broker:
        mine = topic(O.WRITE)
        broker.may(mine._replace(principal="User:else"), mine._replace(host="10.0.0.1"))
        assert (await write(broker))["t"] is TOPIC_NO
        broker.may(mine._replace(host=broker.somebody.peer.address))
        assert (await write(broker))["t"] is E.none


async def test_a_topic_that_may_not_be_written_is_not_disclosed() -> None:
    async with data() as broker:
        assert await write(broker) == {"u": TOPIC_NO, "t": TOPIC_NO}  # there is no u
        broker.may(topic(O.WRITE, "u"))
        assert await write(broker) == {"u": E.unknown_topic_or_partition, "t": TOPIC_NO}


async def test_nobody_writes_transactionally_without_naming_a_transaction() -> None:
    async with data() as broker:
        broker.may(topic(O.WRITE))
        header = {"transactional": True, "producer_id": 5, "producer_epoch": 0}
        refused = await write(broker, header={**header, "base_sequence": 0})
        assert refused == {"u": TXN_NO, "t": TXN_NO}


async def test_a_producer_that_repeats_itself_is_held_to_new_rules_at_once() -> None:
    async with data() as broker:
        broker.may(topic(O.WRITE))
        fields = produce_fields("t", batch("x" * 100))
        for _ in range(5):
            said = await broker.somebody.ask(produce.API, PLAIN, **fields)
            assert produced(said) == {"t": E.none}
        assert isinstance(broker.somebody.peer.answer, FastProduce)
        broker.may(rule(O.WRITE, Kind.TOPIC, "t", Permission.DENY))
        said = await broker.somebody.ask(produce.API, PLAIN, **fields)
        assert produced(said) == {"t": TOPIC_NO}


async def read(broker: Guarded, **more: Any) -> dict[str, E]:
    fields = {**fetch_fields("t"), **more}
    if fields["topics"]:
        fields = two(fields, "topics", "topic")
    said = await broker.somebody.ask(fetch.API, BY_NAME, **fields)
    return {one.topic: one.partitions[0].error_code for one in said.responses}


async def test_a_fetch_is_refused_for_the_one_topic_and_done_for_the_other() -> None:
    async with data() as broker:
        broker.may(topic(O.READ))
        assert await read(broker) == {"u": TOPIC_NO, "t": E.none}


async def test_a_session_is_held_to_new_rules_and_says_a_refusal_until_it_is_gone() -> None:
    async with data() as broker:
        broker.may(topic(O.READ))
        fields = {**fetch_fields("t"), "session_epoch": 0}
        begun = await broker.somebody.ask(fetch.API, BY_NAME, **fields)
        session = {"session_id": begun.session_id, "topics": []}
        assert await read(broker, **session, session_epoch=1) == {}
        broker.may(rule(O.READ, Kind.TOPIC, "t", Permission.DENY))
        for epoch in (2, 3):
            assert await read(broker, **session, session_epoch=epoch) == {"t": TOPIC_NO}


async def test_an_unknown_topic_id_says_nothing_of_permissions() -> None:
    async with data() as broker:
        [one] = fetch_fields("t")["topics"]
        nowhere = {"topic_id": UUID(int=99), "partitions": one["partitions"]}
        fields = {**fetch_fields("t"), "topics": [nowhere]}
        said = await broker.somebody.ask(fetch.API, 13, **fields)
        assert said.responses[0].partitions[0].error_code is E.unknown_topic_id


async def test_offsets_are_committed_for_the_one_topic_and_refused_for_the_other() -> None:
    async with data() as broker:
        broker.may(group(O.READ), topic(O.READ))
        said = await broker.somebody.ask(offset_commit.API, 9, **two(COMMIT, "topics", "name"))
        codes = {one.name: one.partitions[0].error_code for one in said.topics}
        assert codes == {"u": TOPIC_NO, "t": E.none}


async def test_metadata_names_the_one_topic_and_hides_the_other() -> None:
    async with control() as broker:
        broker.may(topic(O.DESCRIBE))
        said = await broker.somebody.ask(metadata.API, **metadata_fields("u", "t"))
        hidden, shown = said.topics
        assert (hidden.name, hidden.error_code) == ("u", TOPIC_NO)
        assert (hidden.topic_id, hidden.partitions) == (None, ())
        assert (shown.name, shown.error_code) == ("t", E.none)
        trusted = await broker.trusted.ask(metadata.API, **metadata_fields())
        assert {one.name for one in trusted.topics} == {"t", "u"}


async def test_metadata_tells_what_may_be_done_with_each_topic_and_the_cluster() -> None:
    async with control() as broker:
        broker.may(topic(O.READ), topic(O.ALL, "u"), cluster(O.ALL))
        fields = metadata_fields(
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        )
        said = await broker.somebody.ask(metadata.API, 10, **fields)
        told = {one.name: one.topic_authorized_operations for one in said.topics}
        assert told == {"t": 1 << O.READ | 1 << O.DESCRIBE, "u": ON_TOPIC}
        assert said.cluster_authorized_operations == ON_CLUSTER
        broker.may(rule(O.DESCRIBE, Kind.CLUSTER, CLUSTER_NAME, Permission.DENY))
        said = await broker.somebody.ask(metadata.API, 10, **fields)
        assert said.cluster_authorized_operations == 0


async def test_topics_are_deleted_where_that_is_allowed() -> None:
    async with control() as broker:
        broker.may(topic(O.DELETE), topic(O.DESCRIBE, "nowhere"))
        names = ("u", "t", "nowhere", "elsewhere")
        topics = [{"name": name, "topic_id": NO_TOPIC_ID} for name in names]
        said = await broker.somebody.ask(delete_topics.API, topics=topics, timeout=5_000)
        assert {one.name: one.error_code for one in said.responses} == {
            "u": TOPIC_NO,
            "t": E.none,
            "nowhere": E.unknown_topic_or_partition,
            "elsewhere": TOPIC_NO,
        }
        assert set(broker.services.metadata.image.topics) == {"u"}


async def test_who_may_not_describe_a_topic_does_not_learn_what_its_id_is_called() -> None:
    async with control() as broker:
        topic_id = broker.services.metadata.image.topics["t"].id
        fields: dict[str, Any] = {
            "topics": [{"name": None, "topic_id": topic_id}],
            "timeout": 5_000,
        }
        [hidden] = (await broker.somebody.ask(delete_topics.API, **fields)).responses
        assert (hidden.name, hidden.error_code) == (None, TOPIC_NO)
        broker.may(topic(O.DESCRIBE))
        [shown] = (await broker.somebody.ask(delete_topics.API, **fields)).responses
        assert (shown.name, shown.error_code) == ("t", TOPIC_NO)


async def test_one_topic_that_may_not_be_written_keeps_the_others_out_of_a_transaction() -> None:
    async with data() as broker:
        broker.may(txn(O.WRITE), topic(O.WRITE), topic(O.ALL, "__consumer_offsets"))
        said = await broker.somebody.ask(
            add_partitions_to_txn.API,
            3,
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=5,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[
                {"name": name, "partitions": [0]} for name in ("u", "t", "__consumer_offsets")
            ],
        )
        codes = {
            one.name: one.results_by_partition[0].partition_error_code
            for one in said.results_by_topic_v3_and_below
        }
        assert codes == {
            "u": TOPIC_NO,
            "t": E.operation_not_attempted,
            "__consumer_offsets": TOPIC_NO,
        }


async def test_somebody_who_only_says_to_be_a_broker_adds_nothing() -> None:
    async with data() as broker:
        said = await broker.somebody.ask(add_partitions_to_txn.API, transactions=[])
        assert said.error_code is CLUSTER_NO
        broker.may(cluster(O.CLUSTER_ACTION))
        said = await broker.somebody.ask(add_partitions_to_txn.API, transactions=[])
        assert said.error_code is E.none  # a broker's principal, whichever listener it uses


async def test_a_transaction_is_described_without_the_topics_that_may_not_be() -> None:
    async with data() as broker:
        await begin(broker)
        me = await broker.trusted.ask(init_producer_id.API, **TXN)
        await broker.trusted.ask(
            add_partitions_to_txn.API,
            3,
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=me.producer_id,
            v3_and_below_producer_epoch=me.producer_epoch,
            v3_and_below_topics=[{"name": "t", "partitions": [0]}],
        )
        broker.may(txn(O.DESCRIBE))
        for names in ([], ["t"]):
            said = await broker.somebody.ask(describe_transactions.API, transactional_ids=["tx"])
            assert [one.topic for one in said.transaction_states[0].topics] == names
            broker.may(topic(O.DESCRIBE))


async def test_what_may_be_done_with_a_group_is_told_when_asked() -> None:
    async with data() as broker:
        await beat(broker)
        broker.may(group(O.ALL), topic(O.DESCRIBE))
        for includes, expected in ((True, ON_GROUP), (False, -(2**31))):
            said = await broker.somebody.ask(
                consumer_group_describe.API,
                group_ids=["g"],
                include_authorized_operations=includes,
            )
            assert said.groups[0].authorized_operations == expected
