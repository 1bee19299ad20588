"""A part of the topics once more: which offsets, into which sinks, and once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import ottla
from ottla.client.admin import NewTopic
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition
from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.backfill import (
    Backfill,
    Range,
    bound,
    describe,
    part_of,
    settle,
)
from ottla.spark.pipelines.spec import Pipeline
from ottla.testing import Broker
from tests.spark.pipelines.jobs import Sent, Stage, values

HOUR_MS = 3_600_000
FILE = """
name: shop
sources:
  events: {topic: events, format: string, options: {ottla.delay: 1s}}
  others: {topic: others}
sinks:
  - {name: copied, from: events, topic: {name: copied, value: value}}
  - {name: doubled, from: events, topic: {name: doubled, value: "concat(value, value)"}}
  - {name: files, from: events, parquet: ./lake}
  - {name: rest, from: others, topic: rest}
"""
BOTH = ("copied", "doubled")


def pipeline(folder: Path, servers: str = "localhost:1") -> Pipeline:
    told = f"bootstrap: {servers}\ncheckpoint: {folder / 'checkpoint'}\n"
    return yaml_file.parse(yaml.safe_load(FILE + told))


def test_a_backfill_has_a_name_checkpoints_and_groups_of_its_own(tmp_path: Path) -> None:
    asked = Backfill("earliest", "latest", BOTH, "first")
    part = part_of(pipeline(tmp_path), asked)
    assert (part.name, part.trigger) == ("shop-backfill-first", "once")
    assert part.checkpoint == str(tmp_path / "checkpoint/backfills/first")
    assert [source.name for source in part.sources] == ["events"]
    zero = TopicPartition("events", 0)
    (source,) = bound(part, {"events": Range({zero: 3}, {zero: 9})}).sources
    assert source.options["startingOffsets"] == '{"events": {"0": 3}}'
    assert source.options["ottla.until"] == '{"events": {"0": 9}}'
    assert source.options["kafka.group.id"] == "shop-backfill-first-events"
    assert "ottla.delay" not in source.options


def test_the_same_command_has_the_same_id_and_another_one_another() -> None:
    one = Backfill("earliest", "latest", ("a", "b"))
    assert one.name == Backfill("earliest", "latest", ("b", "a")).name
    assert one.name != Backfill("earliest", "latest", ("a",)).name


@pytest.mark.parametrize(
    ("sinks", "error"),
    [
        ((), r"^sink files: files cannot be written by a backfill: .*--sink copied --sink doubled"),
        (("file",), r"^--sink file: there is no such sink; expected copied, doubled, files, rest$"),
    ],
)
def test_sinks_that_cannot_take_part_are_refused_by_name(
    tmp_path: Path, sinks: tuple[str, ...], error: str
) -> None:
    with pytest.raises(UserError, match=error):
        part_of(pipeline(tmp_path), Backfill("earliest", "latest", sinks))


def test_offsets_are_settled_by_the_first_start(tmp_path: Path) -> None:
    with Broker() as broker:
        servers = broker.bootstrap_servers
        with ottla.Admin(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic("events", 1)]).all()
        with ottla.Producer(bootstrap_servers=servers) as producer:
            for hour in range(10):
                producer.send("events", b"x", timestamp_ms=hour * HOUR_MS)
        made = pipeline(tmp_path, servers)

        def rows(begin: str, end: str, *, keep: bool = False) -> list[tuple[int, int]]:
            asked = Backfill(begin, end, BOTH)
            ranges = settle(part_of(made, asked), asked, keep=keep)
            return [(start, end) for _, _, start, end, _ in describe(ranges)]

        assert rows("earliest", "latest") == [(0, 10)]
        assert rows("1970-01-01T02:00:00Z", "1970-01-01T05:30:00") == [(2, 6)]
        assert rows(str(7 * HOUR_MS), "2100-01-01T00:00:00Z") == [(7, 10)]
        assert rows('{"events": {"0": 4}}', '{"events": {"0": 6}}') == [(4, 6)]
        assert rows("2100-01-01T00:00:00Z", "latest") == [(10, 10)]
        with pytest.raises(UserError, match=r"^--from yesterday: expected a time such as"):
            rows("yesterday", "latest")

        assert rows("earliest", "latest", keep=True) == [(0, 10)]
        with ottla.Producer(bootstrap_servers=servers) as producer:
            producer.send("events", b"later")
        assert rows("earliest", "latest") == [(0, 10)], "the same backfill reads the same"
        asked = Backfill("earliest", '{"events": {"0": 5}}', BOTH)
        asked = asked._replace(id=Backfill("earliest", "latest", BOTH).name)
        with pytest.raises(UserError, match="this backfill is from earliest to latest; give"):
            settle(part_of(made, asked), asked)


def test_a_backfill_writes_its_part_once_and_leaves_the_live_query_alone(stage: Stage) -> None:
    stage.topics("events", "others", "rest", *BOTH, partitions=1)
    stage.send("events", [Sent(str(number).encode()) for number in range(10)])
    live = pipeline(stage.folder, stage.servers)
    asked = Backfill('{"events": {"0": 3}}', '{"events": {"0": 7}}', BOTH, "second")
    part = part_of(live, asked)
    for _ in range(2):
        ran = stage.once(bound(part, settle(part, asked)))
        for topic in BOTH:
            found = [value[:1] for value in values(stage.read(topic))]
            assert found == [b"3", b"4", b"5", b"6"]
    assert list(ran.totals) == ["events_sinks"]
    assert not (Path(live.checkpoint) / "events_sinks").exists()
    with ottla.Admin(bootstrap_servers=stage.servers) as admin:
        groups = {group.id for group in admin.list_groups()}
    assert "shop-backfill-second-events" in groups
    assert "shop-events" not in groups
    kept = json.loads((Path(part.checkpoint) / "backfill.json").read_text())
    assert kept["sources"]["events"] == {
        "start": {"events": {"0": 3}},
        "end": {"events": {"0": 7}},
    }
