"""Produce (0): record sets for partitions led here. Hot: benchmarks/small_requests.py.

Offered from version 0, because librdkafka misreads a broker that is not, and served from 3: older
versions carry message formats that are no longer written. With acks=0 there is no reply; an error
then closes the connection, so that the client notices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ottla.api.api import Api
from ottla.api.express import express_for
from ottla.api.services import Services
from ottla.log.log import Origin
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_TOPIC_ID, TopicPartition
from ottla.net.slot import Slot
from ottla.protocol.hot import ProducedPartition, decode_produce, produce_reply
from ottla.protocol.hot.produce import ProduceTopic
from ottla.protocol.wire import Call
from ottla.replica.append import AppendTerms, ToAppend
from ottla.replica.txn_gate import TxnTerms
from ottla.replica.wanted import UNKNOWN_TOPIC

KEY: Final = 0
ACKS: Final = (-1, 0, 1)
FIRST_WITH_ZSTD: Final = 7
FIRST_WITH_ABORTABLE: Final = 11
FIRST_THAT_ADDS: Final = 12
"""From here on a producer leaves it to the broker to add partitions to its transaction."""
_new: Final = tuple.__new__  # a named tuple at half its price; hot


def produce(call: Call, frame: memoryview, slot: Slot, services: Services) -> None:
    request = decode_produce(call, frame)
    acks, topics = request.acks, request.topics
    peer = slot.peer
    if peer.express is None or peer.express.missed():
        peer.express = express_for(call, frame, request, services)

    def answer(outcomes: list[ProducedPartition]) -> None:
        if acks == 0:
            _end_without_reply(slot, outcomes)
        else:
            slot.reply((produce_reply(call, _by_topic(topics, outcomes)),))

    txn = None
    if request.transactional_id is not None:
        version = call.version
        txn = TxnTerms(
            request.transactional_id,
            adds=version >= FIRST_THAT_ADDS,
            knows_abortable=version >= FIRST_WITH_ABORTABLE,
        )
    zstd = call.version >= FIRST_WITH_ZSTD
    terms = _new(AppendTerms, (acks, request.timeout_ms, Origin.CLIENT, zstd, txn))
    services.replicas.appends.append(_sets(topics, acks, services), terms, answer)


def _sets(topics: Sequence[ProduceTopic], acks: int, services: Services) -> list[ToAppend]:
    good = ErrorCode.none if acks in ACKS else ErrorCode.invalid_required_acks
    sets = []
    for name, topic_id, partitions in topics:
        code = good
        if name is None:
            name = services.metadata.image.names.get(topic_id or NO_TOPIC_ID)
            if name is None:
                name, code = UNKNOWN_TOPIC, ErrorCode.unknown_topic_id
        for index, records in partitions:
            sets.append(_new(ToAppend, (_new(TopicPartition, (name, index)), records, code)))
    return sets


def _by_topic(
    topics: Sequence[ProduceTopic], outcomes: list[ProducedPartition]
) -> list[tuple[str | UUID, list[ProducedPartition]]]:
    """Outcomes come in the order the sets were asked for."""
    if len(topics) == 1:
        name, topic_id, _ = topics[0]
        return [(name if name is not None else topic_id or NO_TOPIC_ID, outcomes)]
    produced: list[tuple[str | UUID, list[ProducedPartition]]] = []
    at = 0
    for name, topic_id, partitions in topics:
        end = at + len(partitions)
        topic = name if name is not None else topic_id or NO_TOPIC_ID
        produced.append((topic, outcomes[at:end]))
        at = end
    return produced


def _end_without_reply(slot: Slot, outcomes: Sequence[ProducedPartition]) -> None:
    failed = next((o.error_code for o in outcomes if o.error_code is not ErrorCode.none), None)
    if failed is None:
        slot.nothing()
    else:
        slot.close(f"a produce with acks=0 failed: {failed.name}")


API = Api(KEY, "Produce", range(3, 14), raw=produce, advertised_from=0)
