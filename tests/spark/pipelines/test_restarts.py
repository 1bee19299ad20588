"""Which failures are followed by a restart, and when."""

from __future__ import annotations

import pytest

from ottla.spark.pipelines.restarts import (
    DEAD_PLANNER,
    SLOW_WORKER,
    RestartPolicy,
    is_passing,
    reason,
)

PASSING = (
    "ConnectionRefusedError: [Errno 111]",
    "TimeoutError: timed out after 60000 ms; last error: no metadata from any of: a:9092",
    "ottla.model.errors.KafkaError: coordinator_not_available",
    "ottla.client.errors.AbortNeeded: transaction_abortable",
    "SocketTimeoutException: Timed out while waiting for the Python worker to connect back",
    "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
    "Job aborted due to stage failure: … ExecutorLostFailure (executor 1 exited …)",
)
LASTING = (
    "ottla.model.errors.UserError: subscribe: there is no topic orders",
    "ottla.spark.offsets.DataLost: orders-0: the partition no longer exists",
    "ottla.spark.commit_decisions.Superseded: another run of this query is active",
    "ottla.model.errors.KafkaError: topic_authorization_failed",
    "ValueError: it broke",
)


@pytest.mark.parametrize("text", PASSING)
def test_what_passes_by_itself_is_tried_again(text: str) -> None:
    assert is_passing(ValueError(f"[STREAM_FAILED] …\n{text}\n\tat x"))


@pytest.mark.parametrize("text", LASTING)
def test_what_would_fail_again_is_not(text: str) -> None:
    assert not is_passing(ValueError(f"[STREAM_FAILED] …\n{text}\n\tat x"))


def test_the_cause_of_sparks_own_exceptions_counts() -> None:
    outer = ValueError("[STREAM_FAILED]")
    outer._cause = ValueError("TimeoutError: no metadata")  # type: ignore[attr-defined]
    assert is_passing(outer)
    assert reason(outer) == "TimeoutError: no metadata"


@pytest.mark.parametrize(
    "text", ["java.io.EOFException", "java.io.IOException: Broken pipe\n\tat x"]
)
def test_a_dead_planner_of_a_source_is_started_again_and_named(text: str) -> None:
    """Spark shows no more of it than the end of a stream."""
    outer = ValueError("[STREAM_FAILED] Query [id = 1] terminated with exception: ")
    outer._cause = ValueError(text)  # type: ignore[attr-defined]
    assert is_passing(outer)
    assert reason(outer) == DEAD_PLANNER
    assert not is_passing(ValueError("java.io.EOFException: reached end of file /lake/1.parquet"))


def test_a_slow_python_start_is_explained_in_one_line() -> None:
    trace = "\n".join(f"\tat org.apache.spark.X.y(X.scala:{line})" for line in range(100))
    assert reason(ValueError(f"{PASSING[4]}\n{trace}")) == SLOW_WORKER


def test_pauses_double_up_to_the_longest_and_then_it_gives_up() -> None:
    policy = RestartPolicy(attempts=4, backoff_ms=100, backoff_max_ms=350)
    assert [policy.delay_ms(count) for count in range(1, 6)] == [100, 200, 350, 350, None]
    assert RestartPolicy(attempts=10**6).delay_ms(10**6) == 60_000
    assert RestartPolicy(attempts=0).delay_ms(1) is None


def test_the_reason_of_a_batch_function_is_the_last_line_of_its_traceback() -> None:
    failure = Exception(
        "[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred. Reason: An exception was raised by "
        "the Python Proxy. Return Message: Traceback (most recent call last):\n"
        '  File "shared_reads.py", line 81, in write_batch\n'
        "pyspark.errors.SparkRuntimeException: [USER_RAISED_EXCEPTION] bad row\n"
        " SQLSTATE: 39000"
    )
    assert reason(failure).endswith("SparkRuntimeException: [USER_RAISED_EXCEPTION] bad row")
