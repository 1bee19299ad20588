"""Commits in the order they were asked for.

Pure. Owns what waits to be committed and what each refusal means for it. One request is under way
at a time, so that a later commit can never be overtaken by an earlier one; commits that wait
meanwhile go out together, the latest offset of each partition.
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
    """Something to commit, and whom to tell."""

    offsets: Positions
    done: Done
    is_retried: bool
    """It is tried again after a refusal that passes; otherwise a newer one may do better."""
    failures: int = 0


class CommitQueue:
    """What waits."""

    def __init__(self) -> None:
        self._waiting: deque[Commit] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, commit: Commit) -> None:
        self._waiting.append(commit)

    def next(self) -> list[Commit]:
        """Everything that waits, to go out as one; one that is tried again goes alone."""
        if self._waiting and self._waiting[0].failures:
            return [self._waiting.popleft()]
        found = list(self._waiting)
        self._waiting.clear()
        return found

    def failed(self, commits: Sequence[Commit], error: Exception, *, retriable: bool) -> None:
        """Tell those that do not insist; put the others back in front, in their order."""
        for commit in reversed(commits):
            if commit.is_retried and retriable:
                commit.failures += 1
                self._waiting.appendleft(commit)
        for commit in commits:
            if not (commit.is_retried and retriable):
                commit.done(error)

    def give_up(self, error: Exception) -> None:
        """Nobody will commit these any more."""
        while self._waiting:
            self._waiting.popleft().done(error)


def merge_offsets(commits: Sequence[Commit]) -> dict[TopicPartition, OffsetAndMetadata]:
    """The latest offset of each partition."""
    return {tp: offset for commit in commits for tp, offset in commit.offsets.items()}


def classify(codes: Mapping[TopicPartition, ErrorCode]) -> tuple[ErrorReaction, Exception | None]:
    """What the codes of a reply lead to: the worst of them decides."""
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
    after = commit_reaction(code)
    if after is ErrorReaction.JOIN_ANEW:
        return after, CommitFailed(code, MOVED_ON)
    if after is ErrorReaction.JOIN_AGAIN:
        return after, CommitFailed(code, "the group is rebalancing: poll, then commit again")
    return after, _refusal(code, worst)


MOVED_ON = (
    "the group has given this member's partitions to others: between two polls passed more than "
    "max.poll.interval.ms, or its heartbeats did not arrive"
)


def _refusal(code: ErrorCode, tp: TopicPartition) -> KafkaError:
    return refusal(code, f"committing {tp}: {code.name}")
