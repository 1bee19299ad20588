"""An outcome in the making holds what was put into it, in order."""

from __future__ import annotations

from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.records import TimerKey, tombstone
from ottla.coordinator.outcome import CancelTimer, SetTimer
from ottla.model.clock import WallMs


def test_a_draft_becomes_an_outcome() -> None:
    draft = Draft(WallMs(9))
    draft.set(TimerKey("join", "g"), 5)
    draft.cancel(TimerKey("sync", "g"))
    draft.records.append(tombstone("g"))
    outcome = draft.outcome("reply")
    assert outcome.reply == "reply"
    assert outcome.timers == (
        SetTimer(TimerKey("join", "g"), 5),
        CancelTimer(TimerKey("sync", "g")),
    )
    assert outcome.records == (tombstone("g"),)
