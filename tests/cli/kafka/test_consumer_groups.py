from __future__ import annotations

import pytest

from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.client.admin.group_members import joined

GROUPS = "kafka-consumer-groups.sh"


@pytest.mark.spec("TOOL-12")
def test_groups_are_listed_with_their_state(run_kafka: Run, group: str) -> None:
    assert group in run_kafka(GROUPS, "--list").out.split()
    head, *rows = run_kafka(GROUPS, "--list", "--state").out.splitlines()
    assert head.split() == ["GROUP", "STATE"]
    assert [group, "Empty"] in [row.split() for row in rows]
    assert group not in run_kafka(GROUPS, "--list", "--state", "Stable").out


@pytest.mark.spec("TOOL-12")
def test_members_and_lag_are_described(run_kafka: Run, topic: str, cli_broker: Broker) -> None:
    member = joined(cli_broker, topic, group_instance_id="steady")
    describe = (GROUPS, "--describe", "--group", topic)
    _, head, *rows = run_kafka(*describe).out.splitlines()
    assert head.split()[:6] == [
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
    ]
    assert [row.split()[2] for row in rows] == ["0", "1"]
    assert "steady" in run_kafka(*describe, "--members").out
    assert f"{topic}:0,1" in run_kafka(*describe, "--members", "--verbose").out
    assert "Stable" in run_kafka(*describe, "--state").out
    reset = run_kafka(GROUPS, "--reset-offsets", "--group", topic, "--all-topics", "--to-latest")
    assert "can only be reset if the group" in reset.out
    member.close()


def test_an_empty_group_is_remarked_on_stderr(run_kafka: Run, group: str) -> None:
    ran = run_kafka(GROUPS, "--describe", "--group", group)
    assert ran.err == f"\nConsumer group '{group}' has no active members.\n"
    assert run_kafka(GROUPS, "--describe", "--group", group, "--members").out == ""


def test_groups_and_offsets_are_deleted(run_kafka: Run, topic: str, group: str) -> None:
    offsets = run_kafka(GROUPS, "--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert offsets.out.startswith(f"Request succeeded for deleting offsets from group {group}.\n")
    assert offsets.out.split()[-1] == "Successful"
    gone = run_kafka(GROUPS, "--delete", "--group", group)
    assert gone.out == f"Deletion of requested consumer groups ('{group}') was successful.\n"
    again = run_kafka(GROUPS, "--delete", "--group", group)
    assert f"* Group '{group}' could not be deleted due to: " in again.out


def test_all_groups_may_be_meant(run_kafka: Run, group: str) -> None:
    assert group in run_kafka(GROUPS, "--describe", "--all-groups").out


def test_mistakes_are_said(run_kafka: Run) -> None:
    run_kafka(GROUPS).failed(1, "exactly one action")
    run_kafka(GROUPS, "--describe").failed(1, "[all-groups], [group]")
    missing = run_kafka(GROUPS, "--describe", "--group", "nobody")
    assert (missing.code, "Group nobody not found" in missing.out) == (0, True)
    run_kafka(GROUPS, "--delete-offsets").failed(1, "takes the following options")
