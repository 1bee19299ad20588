"""A part of a pipeline's topics through its steps once more, beside the queries that run.

Owns: which offsets a backfill reads, and that they stay the same under its id: they are settled
when it first starts and kept in `backfill.json` beside its checkpoints. A backfill that was
stopped goes on where it was, and one that is done writes nothing more. Never: moves the offsets of
the pipeline's groups, or uses its checkpoints.

Sinks take it exactly once by its own queries. Files cannot: Spark lists them by the number of the
batch, and a second query would find its numbers taken.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from ottla.client.admin.session import Session
from ottla.model.errors import UserError
from ottla.spark import partition_offsets
from ottla.spark.connection import Connection
from ottla.spark.offsets import AtOffsets, Offsets, from_json, to_json
from ottla.spark.options import SourceOptions, batch_source
from ottla.spark.pipelines.checkpoint_owner import local_folder
from ottla.spark.pipelines.sinks.query_layout import sources_of_views
from ottla.spark.pipelines.spec import FilesTarget, Pipeline, Source

FORMAT: Final = 1
FILE: Final = "backfill.json"
FOLDER: Final = "backfills"
EDGES: Final = ("earliest", "latest")
STARTS: Final = ("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp")
STREAMING: Final = ("ottla.delay", "maxOffsetsPerTrigger", "minOffsetsPerTrigger")
UNTIL: Final = "ottla.until"
"""The option of a source that says where a stream ends."""


class Range(NamedTuple):
    """What is read of one source: half-open."""

    start: Offsets
    end: Offsets

    @property
    def records(self) -> int:
        return sum(end - self.start[tp] for tp, end in self.end.items())


class Backfill(NamedTuple):
    """What a command has asked for."""

    begin: str
    end: str
    sinks: tuple[str, ...] = ()
    """All where none is named."""
    id: str = ""

    @property
    def name(self) -> str:
        """Its id; where none is given, one that the same command gives again."""
        asked = json.dumps([self.begin, self.end, sorted(self.sinks)])
        return self.id or hashlib.sha256(asked.encode()).hexdigest()[:8]


def part_of(pipeline: Pipeline, backfill: Backfill) -> Pipeline:
    """The sinks that take part, under a name and a checkpoint of their own; UserError where one
    cannot."""
    named_sinks = {sink.name: sink for sink in pipeline.sinks}
    for name in backfill.sinks:
        if name not in named_sinks:
            raise UserError(
                f"--sink {name}: there is no such sink; expected {', '.join(named_sinks)}"
            )
    sinks = [named_sinks[name] for name in backfill.sinks or named_sinks]
    streams = {source.name for source in pipeline.files if not source.is_table}
    sources = sources_of_views(pipeline)
    for sink in sinks:
        others = [
            name for name in named_sinks if not isinstance(named_sinks[name].target, FilesTarget)
        ]
        hint = f"name the others: {' '.join(f'--sink {name}' for name in others)}"
        if isinstance(sink.target, FilesTarget):
            raise UserError(
                f"sink {sink.name}: files cannot be written by a backfill: Spark lists them by the "
                f"batches of one query; use a table, or {hint}"
            )
        if streams.intersection(sources[sink.source]):
            raise UserError(f"sink {sink.name}: only topics can be read again, not files; {hint}")
    used = {name for sink in sinks for name in sources[sink.source]}
    return replace(
        pipeline,
        name=f"{pipeline.name}-backfill-{backfill.name}",
        checkpoint=f"{pipeline.checkpoint}/{FOLDER}/{backfill.name}",
        trigger="once",
        sinks=tuple(sinks),
        sources=tuple(source for source in pipeline.sources if source.name in used),
        steps=tuple(step for step in pipeline.steps if used.issuperset(sources[step.name])),
        files=tuple(source for source in pipeline.files if source.is_table),
        group_sync=None,
    )


def bound(part: Pipeline, ranges: Mapping[str, Range]) -> Pipeline:
    """The same, reading these offsets and no others, and committing no group's offsets but its
    own."""
    return replace(
        part,
        sources=tuple(
            replace(source, options=_options(source, ranges[source.name], part.name))
            for source in part.sources
        ),
    )


def _options(source: Source, range: Range, name: str) -> dict[str, str]:
    dropped = {option.lower() for option in (*STARTS, "ottla.delay")}
    kept = {key: text for key, text in source.options.items() if key.lower() not in dropped}
    return {
        **kept,
        "startingOffsets": json.dumps(to_json(range.start)),
        UNTIL: json.dumps(to_json(range.end)),
        "kafka.group.id": f"{name}-{source.name}",
    }


def settle(part: Pipeline, backfill: Backfill, *, keep: bool = True) -> dict[str, Range]:
    """The offsets of a backfill: those of its first start, or else as the brokers say now."""
    folder = local_folder(part.checkpoint)
    if folder is None:
        raise UserError(f"checkpoint: {part.checkpoint}: a backfill needs a folder on a local disk")
    recorded = _read(folder / FILE, backfill)
    if recorded is not None:
        return recorded
    ranges = {source.name: _range(source, backfill) for source in part.sources}
    if keep:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / FILE, backfill, ranges)
    return ranges


def _read(path: Path, backfill: Backfill) -> dict[str, Range] | None:
    try:
        fields = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    if fields["format"] > FORMAT:
        raise UserError(
            f"{path}: written by a later version (format {fields['format']}, supported: {FORMAT})"
        )
    if (fields["from"], fields["to"]) != (backfill.begin, backfill.end):
        raise UserError(
            f"--id {backfill.name}: this backfill is from {fields['from']} to {fields['to']}; give "
            "another id, or the same --from and --to to go on with it"
        )
    return {
        name: Range(from_json(each["start"]), from_json(each["end"]))
        for name, each in fields["sources"].items()
    }


def _write(path: Path, asked: Backfill, ranges: Mapping[str, Range]) -> None:
    sources = {
        name: {"start": to_json(each.start), "end": to_json(each.end)}
        for name, each in ranges.items()
    }
    fields = {"format": FORMAT, "from": asked.begin, "to": asked.end, "sources": sources}
    new = path.with_suffix(".new")
    new.write_text(json.dumps(fields) + "\n")
    new.replace(path)


def _range(source: Source, asked: Backfill) -> Range:
    dropped = {option.lower() for option in (*STARTS, *STREAMING)}
    kept = {key: text for key, text in source.options.items() if key.lower() not in dropped}
    given = {
        **kept,
        "startingOffsetsByTimestampStrategy": "latest",
        **_point(asked.begin, "starting", "--from"),
        **_point(asked.end, "ending", "--to"),
    }
    options = batch_source(given)
    with Connection(options.config()) as connection:
        return connection.run(_settle(connection.session, options))


async def _settle(session: Session, options: SourceOptions) -> Range:
    found = await partition_offsets.initial_partitions(session, options)
    start = await partition_offsets.at(session, options, found)
    end = await partition_offsets.at(session, options, found, end=True)
    if isinstance(options.end, AtOffsets):
        end = await partition_offsets.end_of_logs(session, options, end)
    first = await partition_offsets.earliest(session, options, found)
    begin = {tp: max(offset, first.get(tp, offset)) for tp, offset in start.items()}
    return Range(begin, {tp: max(offset, begin[tp]) for tp, offset in end.items()})


def _point(text: str, prefix: str, option: str) -> dict[str, str]:
    """A time, the name of an end, or offsets as JSON, as an option of a source."""
    if text in EDGES or text.startswith("{"):
        return {f"{prefix}Offsets": text}
    if text.isdigit():
        return {f"{prefix}Timestamp": text}
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(
            f"{option} {text}: expected a time such as 2026-05-01T12:00:00Z, milliseconds since "
            "1970, earliest, latest, or offsets as JSON"
        ) from None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return {f"{prefix}Timestamp": str(int(at.timestamp() * 1000))}


def describe(ranges: Mapping[str, Range]) -> Sequence[tuple[str, str, int, int, int]]:
    """A row for each partition: source, partition, from, to, records."""
    return [
        (source, str(tp), each.start[tp], each.end[tp], each.end[tp] - each.start[tp])
        for source, each in ranges.items()
        for tp in sorted(each.end)
    ]
