"""Decoding never crashes, never takes much memory, and says only yes or Disconnect."""

from __future__ import annotations

import subprocess
import sys

import pytest


def decode(seed: int, count: int) -> None:
    command = [sys.executable, "-m", "tests.fuzz.decoding", str(seed), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    decoded, refused, peak_kib = map(int, done.stdout.split())
    assert decoded + refused == count
    assert decoded > count // 20  # mutations that only ever break the header would show nothing
    assert refused > count // 20
    assert peak_kib < 400 << 10


def test_a_hundred_thousand_mutated_frames_decode_or_disconnect() -> None:
    decode(seed=1, count=100_000)


@pytest.mark.slow
def test_a_million_mutated_frames_decode_or_disconnect() -> None:
    for seed in range(2, 12):
        decode(seed, 100_000)
