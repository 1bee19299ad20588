"""What a changed file means for the state of queries that have begun.

Owns: which steps make a query's state, as text that is kept beside its checkpoint, and what is said
when they are others now. Pure. Never: decides: Spark compares the state's columns when the query
starts, and fails where they do not fit; nothing has been read by then.

Spark keeps the state of a query whose steps with state are the same: number, order, keys and
aggregates. Filters and columns before and after them, watermarks and sinks may change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Protocol, TypeAlias

from ottla.spark.pipelines.sinks.query_layout import QueryLayout, seems_stateless, steps_for
from ottla.spark.pipelines.spec import DeduplicateStep, Pipeline, PythonStep, SqlStep, Step

StateSteps: TypeAlias = Mapping[str, str]
"""The steps that make a query's state, in their order: each one's text by its name."""


class StateRecord(Protocol):
    """What is known of queries that have begun."""

    def has(self, query: str) -> bool: ...

    def state_steps(self, query: str) -> StateSteps | None: ...


def state_change(pipeline: Pipeline, layout: QueryLayout, begun: StateRecord) -> str | None:
    """What the file means for the state of a query that has begun; None: it is kept."""
    before = begun.state_steps(layout.name)
    if before is None or not begun.has(layout.name):
        return None
    return change(before, state_steps(pipeline, layout))


def state_steps(pipeline: Pipeline, layout: QueryLayout) -> StateSteps:
    """Those of one query; none for a query without state."""
    is_stateless = seems_stateless(pipeline)
    found: dict[str, str] = {}
    for step in steps_for(pipeline, [member.view for member in layout.members]):
        if not is_stateless(step.name):
            text = _text(step)
            if text is not None:
                found[step.name] = text
    return found


def _text(step: Step) -> str | None:
    match step:
        case SqlStep():
            return " ".join(step.sql.split())
        case DeduplicateStep():
            return f"deduplicate {', '.join(step.keys)}"
        case PythonStep():
            code = hashlib.sha256(step.path.read_bytes()).hexdigest()[:12]
            return f"python {step.place} {dict(step.arguments)} {code}"
    return None  # a reject step after one with state


def change(before: StateSteps, now: StateSteps) -> str | None:
    """What is different about the steps with state, and what Spark can keep; None: nothing is."""
    if dict(before) == dict(now) and list(before) == list(now):
        return None
    if not before:
        return f"keeps state now ({_names(now)}), and has run without: begin with a new checkpoint"
    if not now:
        return f"keeps no state any more ({_names(before)}): begin with a new checkpoint"
    if list(before) != list(now):
        return (
            f"its steps with state were {_names(before)}, and are {_names(now)}: Spark keeps state "
            "by their number and order"
        )
    changed = [name for name in now if before[name] != now[name]]
    if any(now[name].startswith("deduplicate ") for name in changed):
        return f"{_names(changed)} has other keys: Spark cannot keep the state"
    return (
        f"{_names(changed)} changed: Spark keeps the state if keys and aggregates are the same, "
        "and else stops when the query starts"
    )


def _names(steps: Mapping[str, str] | list[str]) -> str:
    return ", ".join(steps)
