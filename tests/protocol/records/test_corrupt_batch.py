"""What is wrong is said with the place where it is."""

from __future__ import annotations

from ottla.protocol.records.header import CorruptBatch


def test_a_fault_has_a_reason_and_a_position() -> None:
    fault = CorruptBatch("batch header is cut short", 42)
    assert (fault.reason, fault.position) == ("batch header is cut short", 42)
    assert str(fault) == "batch header is cut short (at byte 42)"
