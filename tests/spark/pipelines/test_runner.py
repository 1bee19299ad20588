"""`ottla.spark.pipelines.run`: the function behind `ottla pipeline run`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from ottla.spark import pipelines
from ottla.spark.pipelines import templates, yaml_file
from ottla.spark.pipelines.progress import QueryProgress
from ottla.spark.pipelines.runner import run_bounded
from ottla.spark.pipelines.running_queries import history_path
from tests.spark.pipelines.jobs import Sent, Stage, values

COPY = """
name: copy
bootstrap: {servers}
trigger: 100 milliseconds
sources: {{letters: {{topic: letters, format: string}}}}
sinks:
  - name: copies
    from: letters
    topic: {{name: copies, value: value}}
"""


def copy_file(stage: Stage) -> Path:
    stage.topics("letters", "copies", partitions=1)
    stage.send("letters", [Sent(b"a"), Sent(b"b")])
    path = stage.folder / "copy.yaml"
    path.write_text(COPY.format(servers=stage.servers))
    return path


def test_a_file_runs_once_with_listeners_and_its_totals_are_returned(stage: Stage) -> None:
    batches: list[QueryProgress] = []
    checkpoint = str(stage.folder / "checkpoints")
    totals = pipelines.run(
        copy_file(stage),
        once=True,
        checkpoint=checkpoint,
        listeners=[batches.append],
        spark=stage.spark,
    )
    assert totals["copies"].rows_in == 2
    assert sum(batch.rows_in for batch in batches) == 2
    assert values(stage.read("copies")) == [b"a", b"b"]
    history = history_path(checkpoint)
    assert history is not None
    assert len(history.read_text().splitlines()) == len(batches)
    assert stage.spark.range(1).count() == 1, "a session that was handed in is left running"


def test_a_run_ends_by_its_seconds_or_its_event_and_the_next_goes_on(stage: Stage) -> None:
    path, stop = copy_file(stage), Event()
    checkpoint = str(stage.folder / "checkpoints")

    def run_until_copied() -> int:
        totals = pipelines.run(
            path,
            checkpoint=checkpoint,
            stop=stop,
            listeners=[lambda batch: stop.set()],
            spark=stage.spark,
        )
        return totals["copies"].rows_in

    assert run_until_copied() == 2
    stop.clear()
    stage.send("letters", [Sent(b"c")])
    assert run_until_copied() == 1
    pipelines.run(path, checkpoint=checkpoint, seconds=0.1, spark=stage.spark)
    assert values(stage.read("copies")) == [b"a", b"b", b"c"]


def test_overrides_are_for_files_and_not_for_parsed_pipelines(tmp_path: Path) -> None:
    path = tmp_path / "land.yaml"
    path.write_text(templates.text("land"))
    with pytest.raises(ValueError, match="overrides need the path of a pipeline file"):
        pipelines.run(yaml_file.open_pipeline(path), overrides=["trigger=once"])


def test_importing_the_package_imports_no_pyspark_and_no_client() -> None:
    code = (
        "import sys, ottla.spark.pipelines as p; loaded = set(sys.modules); p.run; "
        "print('pyspark' in sys.modules, 'ottla.spark.pipelines.runner' in loaded)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_name_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'walk'"):
        _ = pipelines.walk


def test_a_stopped_run_is_waited_for_in_bounded_time() -> None:
    """A query that is starting cannot be interrupted: SIGTERM would be followed by SIGKILL."""
    stop, never = Event(), Event()
    stop.set()
    assert not run_bounded(never.wait, stop, limit_s=0.01)
    never.set()


def test_a_run_that_ends_in_time_or_fails_says_so() -> None:
    assert run_bounded(lambda: None, Event())

    def fail() -> None:
        raise pipelines.QueryFailed("clean: no such topic")

    with pytest.raises(pipelines.QueryFailed, match="clean"):
        run_bounded(fail, Event())


def test_an_interrupted_wait_stops_the_queries_first() -> None:
    class Interrupted(Event):
        """Ctrl-C while the caller waits."""

        def wait(self, timeout: float | None = None) -> bool:
            if not self.is_set():
                raise KeyboardInterrupt
            return True

    stop, ended = Interrupted(), Event()

    def queries() -> None:
        while not stop.is_set():
            Event().wait(0.001)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        run_bounded(queries, stop, limit_s=30)
    assert ended.is_set()
