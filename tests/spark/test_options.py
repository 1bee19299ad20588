"""Every option, and the error for every bad one."""

from __future__ import annotations

import pickle

import pytest

from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition as TP
from ottla.spark import options
from ottla.spark.offsets import AtOffsets, AtTimes, Edge
from ottla.spark.options import SourceOptions, Subscription
from ottla.spark.plan import Cut, Limits

NEEDED = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "t"}


def stream(**given: str) -> SourceOptions:
    return options.stream_source({**NEEDED, **given})


def batch(**given: str) -> SourceOptions:
    return options.batch_source({**NEEDED, **given})


def without(name: str, **given: str) -> dict[str, str]:
    return {key: text for key, text in {**NEEDED, **given}.items() if key != name}


def test_a_stream_begins_at_the_latest_offset_and_a_batch_reads_from_earliest_to_latest() -> None:
    assert stream().start is Edge.LATEST
    assert (batch().start, batch().end) == (Edge.EARLIEST, Edge.LATEST)


def test_what_is_read_is_committed_unless_told_otherwise() -> None:
    assert batch().config().isolation_level == "read_committed"
    told = batch(**{"kafka.isolation.level": "read_uncommitted"})
    assert told.config().isolation_level == "read_uncommitted"


def test_the_defaults_are_those_of_sparks_connector() -> None:
    made = stream()
    assert made.fail_on_data_loss
    assert made.cut == Cut(None, None)
    assert made.limits == Limits(None, None, 15 * 60_000, None)
    assert (made.offset_retries, made.offset_retry_ms, made.poll_timeout_ms) == (3, 10, 120_000)
    assert made.columns == (
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
    )


def test_names_are_known_in_any_case() -> None:
    made = options.stream_source(
        {"KAFKA.Bootstrap.Servers": "a:1", "SUBSCRIBE": "t", "MINPARTITIONS": "4"}
    )
    assert made.cut.min_partitions == 4
    assert made.config().bootstrap_servers == ("a:1",)


def test_options_travel_to_other_machines() -> None:
    made = batch(startingOffsets='{"t":{"0":1}}', columns="value")
    assert pickle.loads(pickle.dumps(made)) == made


# which partitions


def test_topics_are_separated_by_commas() -> None:
    assert stream(subscribe=" a, b ,a").subscription == Subscription(topics=("a", "b"))


def test_a_pattern_and_named_partitions_are_ways_too() -> None:
    assert options.stream_source(
        without("subscribe", subscribePattern="a.*")
    ).subscription == Subscription(pattern="a.*")
    assert options.stream_source(
        without("subscribe", assign='{"a":[1]}')
    ).subscription == Subscription(partitions=(TP("a", 1),))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (without("subscribe"), "expected one of subscribe, subscribePattern and assign"),
        ({**NEEDED, "assign": '{"t":[0]}'}, "got subscribe and assign"),
        ({**NEEDED, "subscribePattern": "a"}, "got subscribe and subscribePattern"),
        ({**NEEDED, "subscribe": " , "}, "subscribe=','"),
        (without("subscribe", subscribePattern="("), "subscribePattern='\\('"),
        (without("subscribe", subscribePattern=""), "subscribePattern=''"),
        (without("subscribe", assign="t"), "assign='t'"),
        (without("kafka.bootstrap.servers"), "kafka.bootstrap.servers is missing"),
        ({**NEEDED, "kafka.bootstrap.servers": "a:b"}, r"kafka.bootstrap.servers='a:b'"),
    ],
)
def test_a_bad_choice_of_what_to_read_is_refused_by_name(given: dict[str, str], said: str) -> None:
    for read in (options.stream_source, options.batch_source, options.any_source):
        with pytest.raises(UserError, match=said):
            read(given)


# where to begin and end


def test_a_time_comes_before_times_and_these_before_offsets() -> None:
    by_offset = {"startingOffsets": "earliest"}
    by_times = {**by_offset, "startingOffsetsByTimestamp": '{"t":{"0":7}}'}
    by_time = {**by_times, "startingTimestamp": "5"}
    assert stream(**by_offset).start is Edge.EARLIEST
    assert stream(**by_times).start == AtTimes({TP("t", 0): 7})
    assert stream(**by_time).start == AtTimes(5)
    assert stream(**by_time).start_option == "startingTimestamp"


def test_an_end_has_the_same_precedence_and_waits_for_no_record() -> None:
    by_offset = {"endingOffsets": '{"t":{"0":9}}'}
    by_times = {**by_offset, "endingOffsetsByTimestamp": '{"t":{"0":7}}'}
    by_time = {**by_times, "endingTimestamp": "5"}
    assert batch(**by_offset).end == AtOffsets({TP("t", 0): 9})
    assert batch(**by_times).end == AtTimes({TP("t", 0): 7}, latest_if_none=True)
    assert batch(**by_time).end == AtTimes(5, latest_if_none=True)


def test_the_strategy_says_what_a_time_in_the_future_means() -> None:
    told = stream(startingTimestamp="5", startingOffsetsByTimestampStrategy="Latest")
    assert told.start == AtTimes(5, latest_if_none=True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("startingOffsets", "newest"),
        ("startingOffsets", "{"),
        ("startingTimestamp", "yesterday"),
        ("startingTimestamp", "-4"),
        ("startingOffsetsByTimestamp", "earliest"),
        ("startingOffsetsByTimestampStrategy", "earliest"),
        ("failOnDataLoss", "perhaps"),
        ("includeHeaders", "1"),
        ("minPartitions", "0"),
        ("minPartitions", "many"),
        ("maxRecordsPerPartition", "0"),
        ("minRecordsPerPartition", "0"),
        ("maxOffsetsPerTrigger", "0"),
        ("maxOffsetsPerTrigger", "-5"),
        ("maxOffsetsPerTrigger", "1.5"),
        ("minOffsetsPerTrigger", "0"),
        ("maxTriggerDelay", "soon"),
        ("ottla.delay", "soon"),
        ("ottla.delay", '{"another": "5s"}'),
        ("maxTriggerDelay", "5 fortnights"),
        ("maxBytesPerTrigger", "0"),
        ("groupIdPrefix", ""),
        ("kafka.group.id", ""),
        ("kafkaConsumer.pollTimeoutMs", "0"),
        ("fetchOffset.numRetries", "-1"),
        ("fetchOffset.retryIntervalMs", "x"),
        ("partition.metadata.cache.ttl.ms", "0"),
        ("columns", "value,size"),
        ("columns", "value,value"),
        ("kafka.fetch.max.wait.ms", "soon"),
    ],
)
def test_a_bad_value_is_refused_by_the_name_of_its_option(name: str, text: str) -> None:
    for read in (options.stream_source, options.batch_source, options.any_source):
        with pytest.raises(UserError, match=name.replace(".", r"\.")):
            read({**NEEDED, name: text})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("endingOffsets", "latest"),
        ("endingTimestamp", "5"),
        ("endingOffsetsByTimestamp", '{"t":{"0":7}}'),
    ],
)
def test_a_stream_has_no_end(name: str, text: str) -> None:
    with pytest.raises(UserError, match=f"{name}: only for batch queries"):
        stream(**{name: text})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets=latest"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, r"startingOffsets: -1 \(latest\) for t-0"),
        ({"endingOffsets": "earliest"}, "endingOffsets=earliest"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, r"endingOffsets: -2 \(earliest\) for t-0"),
        (
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":4}}'},
            "startingOffsets: 5 for t-0 is after endingOffsets, 4",
        ),
        (
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"1":9}}'},
            "name different partitions",
        ),
    ],
)
def test_a_batch_that_cannot_be_is_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        batch(**given)


# how much


def test_limits_are_read() -> None:
    made = stream(
        maxOffsetsPerTrigger="10",
        minOffsetsPerTrigger="5",
        maxTriggerDelay="2m",
        maxBytesPerTrigger="1000",
        minPartitions="3",
        maxRecordsPerPartition="7",
        minRecordsPerPartition="9",
    )
    assert made.limits == Limits(10, 5, 120_000, 1_000)
    assert made.cut == Cut(3, 7, 9)
    assert stream().cut == Cut()


def test_a_minimum_above_the_maximum_is_refused() -> None:
    with pytest.raises(UserError, match="minOffsetsPerTrigger=6 is more than maxOffsetsPerTrigger"):
        stream(minOffsetsPerTrigger="6", maxOffsetsPerTrigger="5")


# which columns


def test_headers_come_on_request() -> None:
    assert stream(includeHeaders="true").columns[-1] == "headers"


def test_columns_are_chosen_by_name_in_any_case() -> None:
    assert stream(columns="Value, TIMESTAMPTYPE,headers").columns == (
        "value",
        "timestampType",
        "headers",
    )


def test_headers_cannot_be_both_wanted_and_not() -> None:
    with pytest.raises(UserError, match="requires includeHeaders=true"):
        stream(columns="headers", includeHeaders="false")


# the group, the client


def test_the_group_is_the_one_named_or_follows_from_what_is_read() -> None:
    assert stream(**{"kafka.group.id": "g", "groupIdPrefix": "p"}).group == "g"
    prefixed = stream(groupIdPrefix="p").group
    assert prefixed.startswith("p-")
    assert prefixed == stream(groupIdPrefix="p").group  # also after a restart
    assert stream().group != stream(subscribe="u").group


@pytest.mark.parametrize("name", sorted(options.SOURCE_OWNS))
def test_settings_that_the_source_owns_are_refused_by_name(name: str) -> None:
    with pytest.raises(UserError, match=f"kafka.{name} is set by the source itself"):
        stream(**{f"kafka.{name}": "x"})


def test_an_unknown_setting_of_the_client_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UserError, match=r"kafka\.fetch\.max\.byte: .*did you mean fetch.max.bytes"):
        stream(**{"kafka.fetch.max.byte": "1"})


def test_an_unknown_option_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UserError, match="did you mean maxOffsetsPerTrigger"):
        stream(maxOffsetPerTrigger="1")


def test_remaining_options_are_read() -> None:
    made = stream(
        **{
            "failOnDataLoss": "FALSE",
            "kafkaConsumer.pollTimeoutMs": "9",
            "fetchOffset.numRetries": "0",
            "fetchOffset.retryIntervalMs": "0",
            "partition.metadata.cache.ttl.ms": "50",
        }
    )
    assert not made.fail_on_data_loss
    assert (made.poll_timeout_ms, made.offset_retries, made.offset_retry_ms) == (9, 0, 0)
    assert made.partitions_cached_ms == 50
    assert stream(**{"partition.metadata.cache.ttl.ms": "-1"}).partitions_cached_ms == 0


# the sink


def test_a_sink_is_exactly_once_unless_told_otherwise() -> None:
    servers = {"kafka.bootstrap.servers": "a:1"}
    made = options.sink({**servers, "topic": "t", "checkpointLocation": "/c", "queryName": "q"})
    assert (made.topic, made.exactly_once) == ("t", True)
    assert not options.sink({**servers, "ottla.exactly.once": "false"}).exactly_once
    assert options.sink({**servers, "ottla.sink": "late_orders"}).name == "late_orders"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic": ""}, "topic=''"),
        ({"ottla.exactly.once": "maybe"}, "ottla.exactly.once='maybe'"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"kafka.acks": "2"}, "kafka.acks"),
        ({"topik": "t"}, "did you mean topic"),
        ({"ottla.sink": "a-b"}, "ottla.sink='a-b'"),
    ],
)
def test_a_bad_option_of_the_sink_is_refused_by_name(given: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        options.sink({"kafka.bootstrap.servers": "a:1", **given})


@pytest.mark.parametrize("name", sorted(options.SINK_OWNS))
def test_settings_that_the_sink_owns_are_refused_by_name(name: str) -> None:
    with pytest.raises(UserError, match=f"kafka.{name} is set by the sink itself"):
        options.sink({"kafka.bootstrap.servers": "a:1", f"kafka.{name}": "x"})


def test_every_option_has_a_place_in_the_guide() -> None:
    from tools.tidy import ROOT

    guide = (ROOT / "docs" / "spark.md").read_text()
    for name in (*options.SOURCE, *options.SINK):
        assert f"`{name}`" in guide, name
