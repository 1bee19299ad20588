"""The native walk and the plain one give the same verdict on the same bytes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol.records import record
from ottla.protocol.records.batch import build
from ottla.protocol.records.compression import Bytes
from ottla.protocol.records.header import BatchHeader, CorruptBatch
from ottla.protocol.records.record import NewRecord, Record, Summary
from tests.protocol.records.samples import FAULTS, header_for, new_records, section_of

pytest.importorskip("numba", reason="the kernels need the extra `arrow`")
from ottla.protocol.records import columns


def verdicts(
    section: Bytes, header: BatchHeader, *, dense: bool
) -> tuple[Summary | None, Summary | None]:
    found: list[Summary | None] = []
    for module in (record, columns):
        try:
            found.append(module.validate_records(section, header, dense=dense))
        except CorruptBatch:
            found.append(None)
    plain, native = found
    return plain, native


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found_natively(fault: str) -> None:
    count, section = FAULTS[fault]
    with pytest.raises(CorruptBatch):
        columns.validate_records(section, header_for(count), dense=False)


@given(st.lists(new_records, max_size=20))
def test_whole_batches_are_summed_up_alike(records: list[NewRecord]) -> None:
    section, header = section_of(build(records))
    plain, native = verdicts(section, header, dense=True)
    assert plain is not None
    assert plain == native


@given(st.lists(st.integers(0, 50), unique=True, min_size=1), st.booleans())
def test_gaps_are_judged_alike(offsets: list[int], dense: bool) -> None:
    kept = [Record(offset, offset, None, None) for offset in sorted(offsets)]
    plain, native = verdicts(*section_of(build(kept)), dense=dense)
    assert plain == native
    assert (plain is not None) or dense


@settings(max_examples=300)
@given(st.lists(new_records, min_size=1, max_size=4), st.booleans(), st.data())
def test_damaged_batches_are_judged_alike(
    records: list[NewRecord], dense: bool, data: st.DataObject
) -> None:
    section, header = section_of(build(records))
    damaged = bytearray(section)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged)))
        end = at + data.draw(st.integers(0, 2))
        damaged[at:end] = data.draw(st.binary(max_size=6))
    header = header._replace(
        count=header.count + data.draw(st.sampled_from([0, 0, 0, 1, -1])),
        base_timestamp=data.draw(st.sampled_from([0, 2**63 - 1, -(2**63)])),
    )
    plain, native = verdicts(bytes(damaged), header, dense=dense)
    assert plain == native


@settings(max_examples=200)
@given(st.binary(max_size=64), st.integers(-1, 4), st.booleans())
def test_noise_is_judged_alike(section: bytes, count: int, dense: bool) -> None:
    plain, native = verdicts(section, header_for(count), dense=dense)
    assert plain == native


def test_a_view_into_a_frame_is_walked_in_place() -> None:
    section, header = section_of(build([NewRecord(b"k", b"v", timestamp=3)]))
    view = memoryview(b"???" + section)[3:].toreadonly()
    assert columns.validate_records(view, header, dense=True) == Summary(3, 3, 0, -1)


def test_warming_up_is_a_walk_like_any_other() -> None:
    columns.warm_up()
    columns.warm_up()


def test_nothing_imports_the_kernels_unasked() -> None:
    script = (
        "import sys, ottla.protocol.hot, ottla.protocol.records.batch, "
        "ottla.protocol.records.legacy, ottla.protocol.records.control\n"
        "print('numba' in sys.modules or 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
