"""The checksum of record batches."""

from __future__ import annotations

import subprocess
import sys

import crc32c as package
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.records.crc import _compiled_part, crc32c

CASTAGNOLI_CHECK = 0xE3069283  # of "123456789", as every catalogue of checksums has it


def test_it_is_castagnolis() -> None:
    assert crc32c(b"123456789") == CASTAGNOLI_CHECK


@given(st.binary(), st.binary())
def test_it_goes_on_where_another_ended(first: bytes, second: bytes) -> None:
    whole = package.crc32c(first + second)
    assert crc32c(memoryview(second), crc32c(memoryview(first))) == whole


def test_the_installed_package_has_the_part_that_is_taken_alone() -> None:
    assert _compiled_part() is not None


def test_nothing_of_the_package_but_that_part_is_loaded() -> None:
    script = "import sys, ottla.protocol.records.crc; sys.exit('importlib.metadata' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
