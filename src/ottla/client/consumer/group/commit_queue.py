"""Commits in the order they were requested.

Pure. Owns the queue of commits and what each error means for them. One request is in flight at a
time, so that an earlier commit can never overwrite a later one; commits queued meanwhile are sent
together, with the latest offset of each partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ottla.client.consumer.errors import CommitFailed
from ottla.client.consumer.group.error_reactions import ErrorReaction, commit_reaction
from ottla.client.errors import refusal
from ottla.client.offsets import OffsetAndMetadata
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition

Positions: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]
Done: TypeAlias = Callable[[Exception | None], None]


@dataclass(slots=True, eq=False)
class Commit:
    """Offsets to commit, and the callback for the outcome."""

    offsets: Positions
    on_done: Done
    is_retried: bool
    """It is retried after a retriable error; otherwise it fails, and a newer commit may succeed."""
    failures: int = 0


class CommitQueue:
    """The queued commits."""

    def __init__(self) -> None:
        self._waiting: deque[Commit] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, commit: Commit) -> None:
        self._waiting.append(commit)

    def next(self) -> list[Commit]:
        """All queued commits, to be sent as one; a retried one is sent alone."""
        if self._waiting and self._waiting[0].failures:
            return [self._waiting.popleft()]
        commits = list(self._waiting)
        self._waiting.clear()
        return commits

    def fail(self, commits: Sequence[Commit], error: Exception, *, retriable: bool) -> None:
        """Fail those that are not retried; put the others back in front, in order."""
        for commit in reversed(commits):
            if commit.is_retried and retriable:
                commit.failures += 1
                self._waiting.appendleft(commit)
        for commit in commits:
            if not (commit.is_retried and retriable):
                commit.on_done(error)

    def give_up(self, error: Exception) -> None:
        """Fail all queued commits."""
        while self._waiting:
            self._waiting.popleft().on_done(error)


def merge_offsets(commits: Sequence[Commit]) -> dict[TopicPartition, OffsetAndMetadata]:
    """The latest offset of each partition."""
    return {tp: offset for commit in commits for tp, offset in commit.offsets.items()}


def classify(codes: Mapping[TopicPartition, ErrorCode]) -> tuple[ErrorReaction, Exception | None]:
    """The reaction to the error codes of a response: the most severe one decides."""
    rank = (
        ErrorReaction.GIVE_UP,
        ErrorReaction.JOIN_ANEW,
        ErrorReaction.JOIN_AGAIN,
        ErrorReaction.FIND_COORDINATOR,
        ErrorReaction.TRY_LATER,
        ErrorReaction.GO_ON,
    )
    worst = min(codes, key=lambda tp: rank.index(commit_reaction(codes[tp])), default=None)
    if worst is None or not codes[worst]:
        return ErrorReaction.GO_ON, None
    code = codes[worst]
    reaction = commit_reaction(code)
    if reaction is ErrorReaction.JOIN_ANEW:
        return reaction, CommitFailed(code, MOVED_ON)
    if reaction is ErrorReaction.JOIN_AGAIN:
        return reaction, CommitFailed(
            code, "the group is rebalancing: call poll(), then commit again"
        )
    return reaction, _refusal(code, worst)


MOVED_ON = (
    "the group has assigned this member's partitions to others: more than max.poll.interval.ms "
    "passed between two polls, or its heartbeats did not arrive"
)


def _refusal(code: ErrorCode, tp: TopicPartition) -> KafkaError:
    return refusal(code, f"offset commit of {tp} failed: {code.name}")
