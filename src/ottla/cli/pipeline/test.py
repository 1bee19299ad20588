"""`ottla pipeline test`: the steps of a file on the records of its tests, without a broker."""

from __future__ import annotations

import sys

from ottla.cli.console import patience
from ottla.cli.pipeline.options import PipelineFile, Profile, Sets
from ottla.spark.pipelines.trial.check import run_tests


def test(path: PipelineFile, *, sets: Sets = None, profile: Profile = None) -> int:
    """Run the tests in FILE.test.yaml, without a broker.

    Examples:
      ottla pipeline test views.yaml
    """
    failed = count = 0
    with patience("starting Spark"):
        outcomes = run_tests(path, sets or (), profile=profile)
    for outcome in outcomes:
        count += 1
        print(f"{'FAILED' if outcome.differences else 'ok'} {outcome.name}", flush=True)
        for difference in outcome.differences:
            print(f"  {difference}")
        failed += bool(outcome.differences)
    print(f"{count - failed} passed, {failed} failed")
    sys.stdout.flush()
    return 1 if failed else 0
