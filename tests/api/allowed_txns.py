"""What each API about transactions asks the authorizer for."""

from __future__ import annotations

from typing import Any, Final

from ottla.api import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    init_producer_id,
    list_transactions,
    txn_offset_commit,
    write_txn_markers,
)
from ottla.model.errors import ErrorCode as E
from ottla.security.acl import Operation as O
from tests.api.allowed import (
    CLUSTER_NO,
    GROUP_NO,
    TOPIC_NO,
    TXN_NO,
    Case,
    Guarded,
    cluster,
    code,
    first,
    group,
    topic,
    txn,
)

INTERNAL: Final = "INTERNAL"
PRODUCER: Final = {"producer_id": 5, "producer_epoch": 0}
OFFSET: Final = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
NO_TXN: Final[dict[str, Any]] = {"transactional_id": None, "transaction_timeout": 60_000}
TXN: Final[dict[str, Any]] = {**NO_TXN, "transactional_id": "tx"}
ADDED: Final = {**PRODUCER, "topics": [{"name": "t", "partitions": [0]}]}
ADD: Final = {f"v3_and_below_{name}": value for name, value in ADDED.items()}
MARKER: Final = {
    **PRODUCER,
    "transaction_result": False,
    "coordinator_epoch": 0,
    "topics": [{"name": "t", "partition_indexes": [0]}],
}


async def begin(broker: Guarded) -> None:
    await broker.trusted.ask(init_producer_id.API, **TXN)


CASES: Final = (
    Case(init_producer_id.API, TXN, code, TXN_NO, ((txn(O.WRITE), E.none),)),
    Case(
        init_producer_id.API,
        {**TXN, "enable2_pc": True},
        code,
        TXN_NO,
        ((txn(O.WRITE), TXN_NO), (txn(O.TWO_PHASE_COMMIT), E.none)),
        "for two-phase commit",
    ),
    Case(
        init_producer_id.API,
        NO_TXN,
        code,
        CLUSTER_NO,
        ((cluster(O.IDEMPOTENT_WRITE), E.none),),
        "without a transactional id",
    ),
    Case(
        init_producer_id.API,
        NO_TXN,
        code,
        CLUSTER_NO,
        ((topic(O.READ), CLUSTER_NO), (topic(O.WRITE, "any"), E.none)),
        "by who may write to some topic",
    ),
    Case(
        add_partitions_to_txn.API,
        {**ADD, "v3_and_below_transactional_id": "tx"},
        lambda said: (
            said.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        ),
        TXN_NO,
        ((txn(O.WRITE), TOPIC_NO), (topic(O.WRITE), E.invalid_producer_id_mapping)),
        version=3,
    ),
    Case(
        add_partitions_to_txn.API,
        {"transactions": [{**ADDED, "transactional_id": "tx", "verify_only": True}]},
        code,
        CLUSTER_NO,
        ((txn(O.WRITE), CLUSTER_NO), (cluster(O.CLUSTER_ACTION), E.none)),
        "as a broker",
        listener=INTERNAL,
    ),
    Case(
        add_offsets_to_txn.API,
        {**PRODUCER, "transactional_id": "tx", "group_id": "g"},
        code,
        TXN_NO,
        ((txn(O.WRITE), GROUP_NO), (group(O.READ), E.invalid_producer_id_mapping)),
    ),
    Case(
        end_txn.API,
        {**PRODUCER, "transactional_id": "tx", "committed": True},
        code,
        TXN_NO,
        ((txn(O.WRITE), E.invalid_producer_id_mapping),),
    ),
    Case(
        write_txn_markers.API,
        {"markers": [MARKER]},
        lambda said: said.markers[0].topics[0].partitions[0].error_code,
        CLUSTER_NO,
        ((cluster(O.ALTER), E.none),),
    ),
    Case(
        write_txn_markers.API,
        {"markers": [MARKER]},
        lambda said: said.markers[0].topics[0].partitions[0].error_code,
        CLUSTER_NO,
        ((cluster(O.CLUSTER_ACTION), E.none),),
        "as a coordinator",
    ),
    Case(
        txn_offset_commit.API,
        {
            **PRODUCER,
            "group_id": "g",
            "member_id": "",
            "group_instance_id": None,
            "transactional_id": "tx",
            "generation_id": -1,
            "topics": [{"name": "t", "partitions": [OFFSET]}],
        },
        first,
        TXN_NO,
        (
            (txn(O.WRITE), GROUP_NO),
            (group(O.READ), TOPIC_NO),
            (topic(O.READ), E.invalid_producer_id_mapping),
        ),
    ),
    Case(
        describe_transactions.API,
        {"transactional_ids": ["tx"]},
        lambda said: said.transaction_states[0].error_code,
        TXN_NO,
        ((txn(O.DESCRIBE), E.none),),
        before=begin,
    ),
    Case(
        list_transactions.API,
        {"state_filters": [], "producer_id_filters": [], "duration_filter": -1},
        lambda said: [one.transactional_id for one in said.transaction_states],
        [],
        ((txn(O.DESCRIBE), ["tx"]),),
        before=begin,
    ),
)
