"""The example of clicks and sessions, on a broker; its own tests are in `test_trial_check`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.spark.pipelines.yaml_file import open_pipeline
from tests.spark.pipelines.jobs import Sent, Stage

EXAMPLE = Path(__file__).parents[3] / "examples" / "sessions" / "sessions.yaml"
CLICKS = [
    ("ann", "/", "2026-05-01T12:00:00Z"),
    ("ann", "/thanks", "2026-05-01T12:10:00Z"),
    ("ben", "/", "2026-05-01T12:05:00Z"),
    (None, "/", "2026-05-01T12:06:00Z"),
    ("eve", "/", "2026-05-01T15:00:00Z"),  # by then the others' sessions are over
]


@pytest.mark.spec("APP-06")
def test_clicks_become_sessions_by_a_step_in_python(stage: Stage) -> None:
    stage.topics("clicks", "clicks-dead", "sessions", partitions=1)
    rows = [{"user": user, "url": url, "at": at} for user, url, at in CLICKS]
    stage.send("clicks", [Sent(json.dumps(row).encode()) for row in rows])
    pipeline = open_pipeline(EXAMPLE, [f"bootstrap={stage.servers}"])
    pipeline = replace(pipeline, checkpoint=str(stage.folder / "checkpoints"))
    stage.once(pipeline)
    sessions = [json.loads(record.value or b"") for record in stage.read("sessions")]
    assert {row["user"]: (row["clicks"], row["led_to"]) for row in sessions} == {
        "ann": (2, "order"),
        "ben": (1, "browsing"),
    }
    assert len(stage.read("clicks-dead")) == 1
    late = {"user": "zoe", "url": "/", "at": "2026-05-01T12:00:00Z"}
    stage.send("clicks", [Sent(json.dumps(late).encode())])
    assert stage.once(pipeline).totals["out"].late_rows == 1
    assert len(stage.read("sessions")) == len(sessions)
