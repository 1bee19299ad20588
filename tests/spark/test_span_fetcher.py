"""How much is asked for at a time."""

from __future__ import annotations

from ottla.config.client import ClientConfig, ConsumerConfig
from ottla.model.ids import TopicPartition as TP
from ottla.spark.connection import Connection
from ottla.spark.plan import Span
from ottla.spark.span_fetcher import LEAST_BYTES, MOST_BYTES, Fetcher


def fetcher(config: ClientConfig, span: Span) -> Fetcher:
    connection = Connection(config)
    return Fetcher(connection, span, read_committed=True, fail_on_data_loss=True, timeout_ms=1_000)


def test_no_more_is_asked_for_than_a_span_is_likely_to_hold() -> None:
    small = fetcher(ConsumerConfig(), Span(TP("t", 0), 0, 10))
    assert small.bytes_for(10) == LEAST_BYTES
    large = fetcher(ConsumerConfig(), Span(TP("t", 0), 0, 10**9))
    assert large.bytes_for(10**9) == MOST_BYTES
    assert LEAST_BYTES < large.bytes_for(5_000) < MOST_BYTES


def test_a_user_who_says_how_much_is_heard() -> None:
    told = ConsumerConfig.from_options({"max_partition_fetch_bytes": 4_321})
    assert fetcher(told, Span(TP("t", 0), 0, 10)).bytes_for(10**9) == 4_321


def test_the_client_of_a_sink_fetches_with_the_defaults() -> None:
    assert fetcher(ClientConfig(), Span(TP("t", 0), 0, 10)).bytes_for(10) == LEAST_BYTES
