"""Producers that count, and transactions."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.answers.batches import batch
from tests.interop.answers.of_groups import fetched
from tests.interop.answers.of_records import fetch, produce
from tests.interop.answers.scenario import (
    ALL,
    OPTIONS,
    Ask,
    Scenario,
    Steps,
    ask,
    scenario,
    since,
    topic,
)

PID: Final = {"pid": "producer_id", "epoch": "producer_epoch"}
BY_OFFERED: Final = range(6)


def init(versions: int | range, **more: Any) -> Ask:
    usual = {
        "transactional_id": "$tx",
        "transaction_timeout": 60_000,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    return ask("InitProducerId", versions, **{**usual, **more})


def counted(sequence: int, *values: str, **header: Any) -> Any:
    """A batch of the scenario's producer, with its place in the producer's sequence."""
    usual = {"producer_id": "$pid", "producer_epoch": "$epoch", "base_sequence": sequence}
    return batch(*(values or ("a",)), **{**usual, **header})


def in_txn(sequence: int, *values: str, **header: Any) -> Any:
    return counted(sequence, *values, **{"transactional": True, **header})


def add(versions: int | range, **more: Any) -> Ask:
    """Partition 0 of the scenario's topic, added to its transaction."""
    mine = {"transactional_id": "$tx", "producer_id": "$pid", "producer_epoch": "$epoch"}
    topics = [{"name": more.pop("name", "$t"), "partitions": [more.pop("partition", 0)]}]
    options = {name: more.pop(name) for name in OPTIONS if name in more}
    old = {f"v3_and_below_{name}": more.get(name, value) for name, value in mine.items()}
    one = {**mine, "topics": topics, "verify_only": False, **more}
    old["v3_and_below_topics"] = topics
    return ask("AddPartitionsToTxn", versions, **old, transactions=[one], **options)


def mine(api: str, versions: int | range, **more: Any) -> Ask:
    """A request in the name of the scenario's transactional producer."""
    usual = {"transactional_id": "$tx", "producer_id": "$pid", "producer_epoch": "$epoch"}
    return ask(api, versions, **{**usual, **more})


def end(versions: int | range, *, committed: bool = True, **more: Any) -> Ask:
    return mine("EndTxn", versions, committed=committed, **more)


def txn_commit(versions: int | range, offset: int = 5, **more: Any) -> Ask:
    part = {
        "partition_index": more.pop("partition", 0),
        "committed_offset": offset,
        "committed_leader_epoch": -1,
        "committed_metadata": more.pop("metadata", "m"),
    }
    topics = [{"name": more.pop("name", "$t"), "partitions": [part]}]
    usual = {"group_id": "$g", "generation_id": -1, "topics": topics}
    return mine("TxnOffsetCommit", versions, **{**usual, **more})


def listed(versions: int | range, **more: Any) -> Ask:
    return ask("ListTransactions", versions, **{"duration_filter": -1, **more})


def producers(*partitions: int, name: str = "$t") -> Ask:
    return ask(
        "DescribeProducers", 0, topics=[{"name": name, "partition_indexes": list(partitions)}]
    )


def transaction(*names: str) -> Ask:
    return ask("DescribeTransactions", 0, transactional_ids=list(names) or ["$tx"])


def begun() -> Steps:
    return topic("$t", 2), init(4, save=PID, setup=True)


WRONG: Final[dict[str, dict[str, Any]]] = {
    "another producer id": {"producer_id": 999_999},
    "no producer id": {"producer_id": -1},
    "an old epoch": {"producer_epoch": -1},
    "a new epoch": {"producer_epoch": 9},
    "an unknown transactional id": {"transactional_id": "$other"},
    "an empty transactional id": {"transactional_id": ""},
}
SCENARIOS: Final[tuple[Scenario, ...]] = (
    scenario(
        "a producer id",
        init(ALL, transactional_id=None),
        init(ALL, transactional_id=None, transaction_timeout=-1),
    ),
    scenario(
        "a transactional producer id",
        init(ALL),
        init(ALL, transactional_id=""),
        init(ALL, transaction_timeout=0),
        init(ALL, transaction_timeout=-1),
        init(ALL, transaction_timeout=2_000_000_000),
        init(since(3), producer_id=999_999, producer_epoch=0),
        init(since(3), producer_id=-1, producer_epoch=3),
        init(since(3), producer_id=3, producer_epoch=-1),
        init(4, save=PID),
        init(4, producer_id="$pid", producer_epoch="$epoch", save=PID),
        init(4, producer_id="$pid", producer_epoch="$epoch", save=PID),
        init(4, producer_id="$pid", producer_epoch=0),
        init(4, producer_id="$pid", producer_epoch=99),
        init(since(3), transactional_id=None, producer_id=5, producer_epoch=0),
        init(4, transactional_id=None, producer_id=5, producer_epoch=-1),
    ),
    scenario(
        "sequences",
        topic("$t"),
        init(4, transactional_id=None, save=PID),
        produce(9, counted(0)),
        produce(9, counted(0)),
        produce(9, counted(1, "a", "b")),
        produce(9, counted(1, "a")),
        produce(9, counted(5)),
        produce(9, counted(2)),
        *(produce(9, counted(at)) for at in (3, 4, 5, 6, 7, 8)),
        produce(9, counted(0)),
        produce(9, counted(1, "a", "b")),
        produce(9, counted(4)),
        produce(9, counted(9, producer_epoch=1)),
        produce(9, counted(0, producer_epoch=1)),
        produce(9, counted(9)),
        produce(9, counted(-2, producer_epoch=1)),
        produce(9, counted(1, producer_epoch=3)),
        produce(9, counted(7, producer_id=777_777, producer_epoch=0)),
        produce(9, in_txn(8)),
        produce(9, counted(1, producer_epoch=-1)),
        producers(0),
        fetch(12),
    ),
    scenario(
        "producers described",
        topic("$t", 2),
        producers(0, 1, 9),
        producers(-1),
        producers(0, name="$nothing"),
        producers(0, name="a/b"),
        ask("DescribeProducers", 0, topics=[]),
    ),
    *(
        scenario(
            f"a transaction, {'committed' if committed else 'aborted'}, in v{version}",
            begun(),
            add(version),
            transaction(),
            listed(ALL),
            produce(9, in_txn(0, "a", "b"), transactional_id="$tx"),
            producers(0),
            fetch(12, isolation_level=1),
            fetch(12),
            mine("AddOffsetsToTxn", version, group_id="$g"),
            txn_commit(version),
            fetched(7, 0),
            fetched(7, 0, require_stable=True),
            end(version, committed=committed),
            transaction(),
            fetch(12, isolation_level=1),
            fetch(12),
            fetch(4, isolation_level=1),
            producers(0),
            fetched(7, 0, require_stable=True),
            end(version, committed=committed),
            end(version, committed=not committed),
            listed(ALL),
        )
        for version in range(4)
        for committed in (True, False)
    ),
    *(
        scenario(
            f"a transaction of the second kind, {'committed' if committed else 'aborted'}",
            begun(),
            produce(12, in_txn(0, "a", "b"), transactional_id="$tx"),
            transaction(),
            txn_commit(5),
            transaction(),
            end(5, committed=committed, save=PID),
            transaction(),
            fetch(12, isolation_level=1),
            fetched(7, 0, require_stable=True),
            end(5, committed=committed),
            end(5, committed=not committed),
            produce(12, in_txn(0), transactional_id="$tx"),
            produce(12, in_txn(0, producer_epoch=0), transactional_id="$tx"),
            end(5, committed=committed, producer_epoch=0),
        )
        for committed in (True, False)
    ),
    *(
        scenario(
            f"transactions with {what}",
            begun(),
            add(BY_OFFERED, **wrong),
            mine("AddOffsetsToTxn", ALL, group_id="$g", **wrong),
            txn_commit(ALL, **wrong),
            end(ALL, **wrong),
            transaction(),
        )
        for what, wrong in WRONG.items()
    ),
    scenario(
        "what a transaction takes",
        begun(),
        add(BY_OFFERED, name="$nothing"),
        add(3, partition=9),
        add(3, name="a/b"),
        add(3, name="__consumer_offsets"),
        ask(
            "AddPartitionsToTxn",
            3,
            v3_and_below_transactional_id="$tx",
            v3_and_below_producer_id="$pid",
            v3_and_below_producer_epoch="$epoch",
            v3_and_below_topics=[],
        ),
        add(range(4, 6), verify_only=True),
        add(3),
        add(3),
        add(range(4, 6), verify_only=True),
        add(range(4, 6), verify_only=True, partition=1),
        mine("AddOffsetsToTxn", 3, group_id="$g"),
        txn_commit(3, group_id=""),
        txn_commit(3, name="$nothing"),
        txn_commit(3, partition=9),
        txn_commit(3, metadata="x" * 5000),
        txn_commit(3, -1),
        txn_commit(3, generation_id=3, member_id="nobody"),
        txn_commit(ALL, topics=[]),
        produce(9, in_txn(0), transactional_id="$tx", partition=1),
        produce(9, in_txn(0), transactional_id="$other"),
        produce(9, in_txn(0)),
        produce(9, counted(0), transactional_id="$tx"),
        transaction(),
        init(4, save=PID),
        transaction(),
        end(3, producer_epoch=0),
    ),
    scenario(
        "a transaction of a group without a name",
        begun(),
        mine("AddOffsetsToTxn", 3, group_id=""),
        txn_commit(3, group_id=""),
    ),
    scenario("nothing to end", begun(), end(3), end(3, committed=False), end(5), transaction()),
    scenario(
        "transactions described and listed",
        begun(),
        transaction("$nobody"),
        transaction(""),
        transaction("$tx", "$nobody"),
        ask("DescribeTransactions", 0, transactional_ids=[]),
        add(3, setup=True),
        listed(ALL, state_filters=["Ongoing"]),
        listed(ALL, state_filters=["Empty"]),
        listed(ALL, state_filters=["Odd", "Ongoing"]),
        listed(ALL, producer_id_filters=["$pid"]),
        listed(ALL, producer_id_filters=[999_999]),
        listed(since(1), duration_filter=0),
        listed(since(1), duration_filter=10_000_000),
        listed(since(2), transactional_id_pattern="tx-.*"),
        listed(since(2), transactional_id_pattern="none.*"),
        listed(since(2), transactional_id_pattern="("),
        listed(since(2), transactional_id_pattern=""),
    ),
    scenario(
        "markers written by hand",
        topic("$t"),
        init(4, transactional_id=None, save=PID),
        *(
            ask(
                "WriteTxnMarkers",
                ALL,
                markers=[
                    {
                        "producer_id": "$pid",
                        "producer_epoch": "$epoch",
                        "transaction_result": True,
                        "coordinator_epoch": epoch,
                        "topics": [{"name": name, "partition_indexes": [part]}],
                    }
                ],
            )
            for epoch, name, part in ((0, "$t", 0), (0, "$t", 9), (0, "$nothing", 0), (-1, "$t", 0))
        ),
        ask("WriteTxnMarkers", ALL, markers=[]),
        fetch(12),
    ),
)
