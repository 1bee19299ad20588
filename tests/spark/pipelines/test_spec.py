"""What a file says is a value: nothing changes it on the way."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from ottla.spark.pipelines.spec import Pipeline, Sink, Source, TopicTarget, Watermark


def test_parts_of_a_pipeline_are_values() -> None:
    sink = Sink("a", "v", TopicTarget("b:1", "t"))
    made = Pipeline("p", "b:1", "./c", "once", (Source("v", {}),), (), (sink,))
    assert made == Pipeline("p", "b:1", "./c", "once", (Source("v", {}),), (), (sink,))
    assert sink.mode == "append"
    with pytest.raises(FrozenInstanceError):
        made.trigger = "often"  # type: ignore[misc]
    assert Watermark("at", "1 hour") != Watermark("at", "2 hours")
