from __future__ import annotations

import ottla
from ottla.cli.records.parsing import ParsedRecord
from ottla.cli.records.sending import TELL_EVERY, send_all
from ottla.model.ids import TopicPartition
from ottla.testing import Broker


def test_every_draft_is_sent_and_its_outcome_counted(
    cli_broker: Broker, admin: ottla.Admin, topic: str
) -> None:
    told: list[int] = []
    with ottla.Producer(bootstrap_servers=cli_broker.bootstrap_servers) as producer:
        many = (ParsedRecord(b"x", partition=1 if at else None) for at in range(TELL_EVERY))
        sent = send_all(producer, topic, many, partition=0, tell=told.append)
    assert (sent.count, sent.failed, sent.first) == (TELL_EVERY, 0, None)
    assert told == [TELL_EVERY]
    ends = admin.list_offsets({TopicPartition(topic, at): -1 for at in range(2)}).all()
    assert [one.offset for one in ends.values()] == [1, TELL_EVERY - 1]


def test_the_first_failure_is_kept(cli_broker: Broker, topic: str) -> None:
    with ottla.Producer(
        bootstrap_servers=cli_broker.bootstrap_servers, max_request_size=1000
    ) as producer:
        sent = send_all(producer, topic, [ParsedRecord(b"x" * 5000), ParsedRecord(b"small")])
    assert (sent.count, sent.failed) == (2, 1)
    assert isinstance(sent.first, ottla.RecordTooLarge)
