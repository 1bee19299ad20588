"""A transaction that nobody will end: written into a partition, unknown to every coordinator."""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from tests.raw_requests import PRODUCE, Line, batch, produce_fields

PRODUCER_ID = 4711


def leave_hanging(bootstrap: str, topic: str) -> None:
    """One record in partition 0, on a broker that does not verify transactions."""
    records = batch(
        "lost", producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=0, transactional=True
    )
    fields = {**produce_fields(topic, records), "transactional_id": "forgotten"}
    with Line(bootstrap) as line:
        reply = line.ask(PRODUCE, 9, **fields)
    assert reply.responses[0].partition_responses[0].error_code is ErrorCode.none, reply
