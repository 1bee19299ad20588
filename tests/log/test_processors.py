"""Where the kernel's sync workers run."""

from __future__ import annotations

import pytest

from ottla.log import io_uring
from ottla.log.io_uring import all_but_one, device_interrupts

TABLE = """\
           CPU0       CPU1       CPU3
 24:          1          0          2  IO-APIC   5-edge      ACPI:Ged
 36:          0       4711          0 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
NMI:      90000      90000      90000   Non-maskable interrupts
LOC:     900000          7          7   Local timer interrupts
ERR:          3
"""


def test_only_devices_are_counted_and_by_the_processor_of_their_column() -> None:
    assert device_interrupts(TABLE) == {0: 1, 1: 4711, 3: 2}


@pytest.mark.parametrize("table", ["", "\n", "nonsense\n 1: x y", "CPU0 CPU1\n 7:\n"])
def test_a_table_that_says_nothing_counts_nothing(table: str) -> None:
    assert not any(device_interrupts(table).values())


@pytest.mark.parametrize(
    ("allowed", "workers"),
    [
        ({0, 1}, {1}),  # the disk reports to 1
        ({1, 3}, {1}),
        ({0, 1, 3}, {1, 3}),
        ({1, 5}, {1}),  # 5 is not listed: nothing interrupts it
        ({0}, set()),
        (set(), set()),
    ],
)
def test_the_least_interrupted_is_left_to_the_loop(allowed: set[int], workers: set[int]) -> None:
    assert all_but_one(frozenset(allowed), TABLE) == workers


def test_where_all_are_alike_it_is_the_first() -> None:
    assert all_but_one(frozenset({2, 4, 6}), "") == {4, 6}


def test_a_table_that_cannot_be_read_is_no_hindrance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io_uring, "INTERRUPTS", io_uring.INTERRUPTS / "nowhere")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert io_uring.for_workers() == {1}
