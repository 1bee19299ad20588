"""Which streaming queries a pipeline has, and which sinks share one.

Owns: the rule that one query reads a source for all sinks without state, and that what has begun
otherwise stays as it is. Pure: what the checkpoints say is handed in.

Sinks and dead letters whose view has one source and keeps no state share the query `SOURCE_sinks`:
it reads each batch once, and each of its writes takes the batch once, by (query, write, batch).
Sinks to topics with the same brokers and options are one write. All others are queries of their
own: those with state, of several sources, with a step in Python, or in a mode other than append.

A sink keeps its place. One that has a checkpoint of its own goes on with it; one that is new to a
pipeline whose queries have begun gets a query of its own, as it has to read from the beginning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from ottla.model.errors import UserError
from ottla.spark.pipelines.spec import (
    ConsoleTarget,
    DeduplicateStep,
    FilesTarget,
    Pipeline,
    PythonStep,
    RejectStep,
    Sink,
    SqlStep,
    Step,
    TableTarget,
    TopicTarget,
)

SHARED: Final = "_sinks"
"""The name of a shared query is that of its source with this at the end."""
SHARED_TARGETS: Final = (TopicTarget, FilesTarget, TableTarget, ConsoleTarget)
TEXTS: Final = re.compile(r"'(?:[^'\\]|\\.)*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
NAMES: Final = re.compile(r"(?<![.\w])\w+")
STATE_WORDS: Final = frozenset(
    ("group", "distinct", "limit", "union", "intersect", "except", "minus", "over", "having")
)
"""Words of SQL that may mean state; Spark's analysis decides when the pipeline starts."""

Record: TypeAlias = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Shared queries that have begun: the members of each write, by its name, by query."""


class Member(NamedTuple):
    """A sink, or the dead letters of a view; `letters` with a sink: it writes both."""

    name: str
    view: str
    sink: Sink | None = None
    letters: bool = False
    bootstrap: str = ""
    """Of the cluster that dead letters go to."""

    @property
    def group(self) -> tuple[str, tuple[tuple[str, str], ...]] | None:
        """What members of one write have in common; None: it is written alone."""
        if self.sink is None:
            return self.bootstrap, ()
        target = self.sink.target
        if not isinstance(target, TopicTarget):
            return None
        return target.bootstrap, tuple(sorted(target.options.items()))

    @property
    def written_names(self) -> tuple[str, ...]:
        """Its own name, and that of the letters it writes: should it no longer take them, they go
        on where they are."""
        takes = self.letters and self.sink is not None
        return (self.name, letters_name(self.view)) if takes else (self.name,)


class Write(NamedTuple):
    """What is written of a batch in one step, under a name that stays."""

    name: str
    members: tuple[Member, ...]


class QueryLayout(NamedTuple):
    """One streaming query."""

    name: str
    writes: tuple[Write, ...]
    is_shared: bool = False

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(member for write in self.writes for member in write.members)


def layouts(
    pipeline: Pipeline,
    is_stateless: Callable[[str], bool],
    record: Record,
    has_checkpoint: Callable[[str], bool],
) -> list[QueryLayout]:
    """The queries of a pipeline, in the order of the file.

    `is_stateless` tells it of a view, `has_checkpoint` whether a query of this name has begun.
    """
    places = {
        name: (query, write)
        for query, writes in record.items()
        for write, names in writes.items()
        for name in names
    }
    parts = [part for each in members(pipeline) for part in _parts(each, places, has_checkpoint)]
    shareable = shared_sources(pipeline, parts, is_stateless)
    names = {member.name for member in parts}
    begun = {name: query for name, (query, _) in places.items()}
    by_query: dict[str, list[Member]] = {}
    alone: set[str] = set()
    for member in parts:
        source = shareable.get(member.name)
        if has_checkpoint(member.name):
            alone.add(member.name)
        elif member.name in begun:
            _check_place(member, begun[member.name], source)
            by_query.setdefault(begun[member.name], []).append(member)
        elif source is None or not pipeline.shared_reads or source + SHARED in {*record, *names}:
            alone.add(member.name)
        else:
            by_query.setdefault(source + SHARED, []).append(member)
    for query, sharing in list(by_query.items()):
        if query not in record and len(sharing) == 1:
            alone.add(sharing[0].name)
            del by_query[query]
    query_layouts: list[QueryLayout] = []
    for member in parts:
        if member.name in alone:
            query_layouts.append(QueryLayout(member.name, (Write(member.name, (member,)),)))
            continue
        query = next(name for name, sharing in by_query.items() if member in sharing)
        if all(layout.name != query for layout in query_layouts):
            writes = _writes(by_query[query], record.get(query, {}))
            query_layouts.append(QueryLayout(query, writes, is_shared=True))
    return query_layouts


def check_writes(
    query_layouts: Sequence[QueryLayout], record: Record, unfinished: Callable[[str], int | None]
) -> None:
    """UserError where a sink would write a batch again: it was part of another write when its query
    was killed. `unfinished` tells the batch of a query that will run again."""
    for layout in query_layouts:
        begun = record.get(layout.name, {})
        name_of = {name: write for write, names in begun.items() for name in names}
        moved = [
            member.name
            for write in layout.writes
            for member in write.members
            if name_of.get(member.name, write.name) != write.name
        ]
        batch = unfinished(layout.name) if moved else None
        if batch is not None:
            raise UserError(
                f"{', '.join(moved)}: its brokers or options have changed, or those of a sink that "
                f"is written with it, and batch {batch} of the query {layout.name} has not ended: "
                "it may be in the topic already. Run the pipeline once with the settings of "
                "before (--once), then with the new ones"
            )


def record_of(query_layouts: Sequence[QueryLayout]) -> Record:
    """What must be known when the pipeline is started again."""
    return {
        layout.name: {
            write.name: tuple(name for member in write.members for name in member.written_names)
            for write in layout.writes
        }
        for layout in query_layouts
        if layout.is_shared
    }


def members(pipeline: Pipeline) -> list[Member]:
    """The sinks and the dead letters. A sink that writes the very view from which rows are refused
    to the same cluster takes its letters, too."""
    letters = {
        source.name: source.options["kafka.bootstrap.servers"]
        for source in pipeline.sources
        if source.dead_letter is not None
    }
    letters |= {
        step.name: pipeline.bootstrap
        for step in pipeline.steps
        if isinstance(step, RejectStep) and step.dead_letter is not None
    }
    all_members: list[Member] = []
    for sink in pipeline.sinks:
        servers = letters.get(sink.source)
        takes = servers is not None and takes_letters(sink, servers)
        if takes:
            del letters[sink.source]
        all_members.append(Member(sink.name, sink.source, sink, takes, servers or ""))
    all_members += [
        Member(letters_name(view), view, None, True, servers) for view, servers in letters.items()
    ]
    return all_members


def letters_name(view: str) -> str:
    """What the dead letters of a view are called among the sinks."""
    return f"{view}_dead_letter"


def takes_letters(sink: Sink, bootstrap: str) -> bool:
    """Whether a sink may write its view's letters, for this cluster, too: what it was told of its
    own holds for both."""
    target = sink.target
    return (
        isinstance(target, TopicTarget)
        and target.bootstrap == bootstrap
        and not target.options
        and sink.mode == "append"
    )


def shared_sources(
    pipeline: Pipeline, found: Sequence[Member], is_stateless: Callable[[str], bool]
) -> dict[str, str]:
    """The members that can share a query, and the source of each."""
    sources = sources_of_views(pipeline)
    tables = {source.name for source in pipeline.files if source.is_table}
    by_python = views_by_python(pipeline)
    shareable: dict[str, str] = {}
    for member in found:
        streams = [name for name in sources[member.view] if name not in tables]
        sink = member.sink
        fits = sink is None or (sink.mode == "append" and isinstance(sink.target, SHARED_TARGETS))
        is_one = len(streams) == 1 and member.view not in by_python
        if fits and is_one and is_stateless(member.view):
            shareable[member.name] = streams[0]
    return shareable


def seems_stateless(pipeline: Pipeline) -> Callable[[str], bool]:
    """Which views have no state, by the words of their SQL: for a plan without Spark."""
    reads = {step.name: views_read(step, _views_before(pipeline, step)) for step in pipeline.steps}
    stateful: set[str] = set()
    for step in pipeline.steps:
        words = _words(step.sql) if isinstance(step, SqlStep) else set()
        keeps_state = isinstance(step, DeduplicateStep | PythonStep) or words & STATE_WORDS
        if keeps_state or stateful.intersection(reads[step.name]):
            stateful.add(step.name)
    return lambda view: view not in stateful


def sources_of_views(pipeline: Pipeline) -> dict[str, tuple[str, ...]]:
    """The sources that each view is made of, in the order of the file."""
    names = _source_names(pipeline)
    found: dict[str, tuple[str, ...]] = {name: (name,) for name in names}
    for step in pipeline.steps:
        read = {source for view in views_read(step, tuple(found)) for source in found[view]}
        found[step.name] = tuple(name for name in names if name in read)
    return found


def steps_for(pipeline: Pipeline, views: Sequence[str]) -> tuple[Step, ...]:
    """The steps that these views are made by, in the order of the file."""
    needed = set(views)
    for step in reversed(pipeline.steps):
        if step.name in needed:
            needed.update(views_read(step, _views_before(pipeline, step)))
    return tuple(step for step in pipeline.steps if step.name in needed)


def views_by_python(pipeline: Pipeline) -> set[str]:
    """The views that a step in Python has a part in."""
    found: set[str] = set()
    for step in pipeline.steps:
        read = views_read(step, _views_before(pipeline, step))
        if isinstance(step, PythonStep) or found.intersection(read):
            found.add(step.name)
    return found


def views_read(step: Step, known: Sequence[str]) -> list[str]:
    """The views that a step reads. In SQL they are found by their names: a column of the same name
    counts as well."""
    if isinstance(step, SqlStep):
        names = _words(step.sql)
        return [view for view in known if view.lower() in names]
    return list(step.sources) if isinstance(step, PythonStep) else [step.source]


def _words(sql: str) -> set[str]:
    return {name.lower() for name in NAMES.findall(TEXTS.sub(" ", sql))}


def _source_names(pipeline: Pipeline) -> list[str]:
    names = [source.name for source in pipeline.sources]
    return names + [source.name for source in pipeline.files]


def _views_before(pipeline: Pipeline, step: Step) -> list[str]:
    earlier = pipeline.steps[: pipeline.steps.index(step)]
    return [*_source_names(pipeline), *(each.name for each in earlier)]


def _parts(
    member: Member,
    places: Mapping[str, tuple[str, str]],
    has_checkpoint: Callable[[str], bool],
) -> list[Member]:
    """A sink and the letters it takes; they are two where the letters have a place of their own."""
    letters = letters_name(member.view)
    if not member.letters or member.sink is None:
        return [member]
    if not has_checkpoint(letters) and places.get(letters) in (None, places.get(member.name)):
        return [member]
    apart = Member(letters, member.view, None, True, member.bootstrap)
    return [member._replace(letters=False), apart]


def _check_place(member: Member, query: str, source: str | None) -> None:
    if source is None or source + SHARED != query:
        raise UserError(
            f"{member.name}: it is part of the query {query}, which reads one source for sinks "
            "without state, and the changed file no longer allows that. Give the sink a new name, "
            "and it reads from the beginning; or begin with a new checkpoint"
        )


def _writes(sharing: Sequence[Member], begun: Mapping[str, tuple[str, ...]]) -> tuple[Write, ...]:
    """The members by write: those that have begun under their name, the others with their like."""
    name_of = {name: write for write, names in begun.items() for name in names}
    by_write: dict[str, list[Member]] = {}
    for member in sharing:
        name = name_of.get(member.name, member.name)
        like = [
            write
            for write, others in by_write.items()
            if member.group is not None and others[0].group == member.group
        ]
        if member.name not in name_of and like:
            name = like[0]
        elif name in by_write and name not in like:
            name = member.name  # its options are no longer those of the others
        by_write.setdefault(name, []).append(member)
    return tuple(Write(name, tuple(those)) for name, those in by_write.items())
