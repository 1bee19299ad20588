"""The bytes of `__transaction_state`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.txn.records import (
    TransactionalIdExpired,
    decode,
    encode_key,
    encode_value,
    record_of,
)
from ottla.coordinator.txn.state import NO_EPOCH, Transaction, TxnState
from ottla.model.clock import WallMs
from ottla.model.ids import ProducerId, TopicPartition

KEY = bytes.fromhex("00000002") + b"tx"
LONGS = st.integers(-(2**63), 2**63 - 1)
SHORTS = st.integers(-(2**15), 2**15 - 1)
KEYS = st.builds(TopicPartition, st.text(max_size=9), st.integers(0, 2**31 - 1))


@pytest.mark.spec("TXN-23")
def test_the_key_is_a_version_and_the_transactional_id() -> None:
    assert encode_key("tx") == KEY


@pytest.mark.spec("TXN-24", "ERR-04")
def test_the_first_version_of_the_value_is_read() -> None:
    value = bytes.fromhex(
        "0000"  # version
        "0000000000000007"  # producer id
        "0003"  # epoch
        "0000ea60"  # timeout
        "01"  # ongoing
        "00000001" "000161" "00000002" "00000000" "00000004"  # a: 0, 4
        "000000000000000a"  # updated
        "0000000000000009"  # started
    )  # fmt: skip
    partitions = frozenset({TopicPartition("a", 0), TopicPartition("a", 4)})
    assert decode(KEY, value) == Transaction(
        "tx",
        ProducerId(7),
        3,
        TxnState.ONGOING,
        60_000,
        partitions,
        started_ms=WallMs(9),
        updated_ms=WallMs(10),
    )


@pytest.mark.spec("TXN-24")
def test_the_newest_version_of_the_value_is_written() -> None:
    txn = Transaction(
        "tx", ProducerId(7), 3, TxnState.EMPTY, 60_000, updated_ms=WallMs(10), version=2
    )
    assert encode_value(txn._replace(next_producer_id=ProducerId(8))).hex(" ") == (
        "00 01 "
        "00 00 00 00 00 00 00 07 00 03 00 00 ea 60 00 "
        "00 "  # no partitions
        "00 00 00 00 00 00 00 0a ff ff ff ff ff ff ff ff "
        "02 "  # two tagged fields: the next producer id, the client's transaction version
        "01 08 00 00 00 00 00 00 00 08 "
        "02 02 00 02"
    )


@given(
    st.builds(
        Transaction,
        st.text(min_size=1, max_size=30),
        LONGS.map(ProducerId),
        SHORTS,
        st.sampled_from([state for state in TxnState if state is not TxnState.EMPTY]),
        st.integers(-(2**31), 2**31 - 1),
        st.frozensets(KEYS, max_size=5),
        LONGS,
        LONGS,
        SHORTS,
        st.just(NO_EPOCH),
        previous_producer_id=LONGS.map(ProducerId),
        next_producer_id=LONGS.map(ProducerId),
        next_epoch=SHORTS,
    )
)
def test_what_is_written_reads_back(txn: Transaction) -> None:
    record = record_of(txn)
    assert decode(record.key, record.value) == txn


@pytest.mark.spec("TXN-43")
def test_a_forgotten_id_is_a_tombstone() -> None:
    record = record_of(TransactionalIdExpired("tx"))
    assert record.value is None
    assert decode(record.key, None) == TransactionalIdExpired("tx")


def test_a_key_of_a_later_release_is_none_of_ours() -> None:
    assert decode(b"\0\x09whatever", b"") is None


@pytest.mark.parametrize(
    "value", [b"", b"\0", b"\0\7", b"\0\0\1", b"\0\1\1\1", b"\0\1" + b"\7" * 30]
)
def test_bytes_that_are_no_value_are_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match="transaction"):
        decode(KEY, value)
