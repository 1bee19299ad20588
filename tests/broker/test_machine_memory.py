"""The memory a process may use, as the system's files say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.memory import UNKNOWN_BYTES, memory_bytes

GIB = 1 << 30


def a_machine(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"proc/meminfo": f"MemTotal: {16 << 20} kB\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_without_a_control_group_it_is_the_machines(tmp_path: Path) -> None:
    assert memory_bytes(a_machine(tmp_path, {})) == 16 * GIB


@pytest.mark.parametrize(
    ("own", "above", "high", "expected"),
    [
        ("max", "max", "max", 16 * GIB),
        (str(2 * GIB), "max", "max", 2 * GIB),
        ("max", str(3 * GIB), "max", 3 * GIB),
        (str(4 * GIB), str(3 * GIB), "max", 3 * GIB),
        (str(4 * GIB), "max", str(GIB), GIB),
        (str(64 * GIB), "max", "max", 16 * GIB),
    ],
)
def test_a_control_group_of_version_2_or_one_above_it_says_less(
    tmp_path: Path, own: str, above: str, high: str, expected: int
) -> None:
    files = {
        "proc/self/cgroup": "0::/system.slice/ottla.service\n",
        "sys/fs/cgroup/system.slice/memory.max": above,
        "sys/fs/cgroup/system.slice/ottla.service/memory.max": own,
        "sys/fs/cgroup/system.slice/ottla.service/memory.high": high,
    }
    assert memory_bytes(a_machine(tmp_path, files)) == expected


def test_a_container_that_sees_only_its_own_group_finds_its_limit(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/../../kubepods/pod1\n", "sys/fs/cgroup/memory.max": str(GIB)}
    assert memory_bytes(a_machine(tmp_path, files)) == GIB


def test_a_control_group_of_version_1_says_less(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "12:pids:/x\n5:memory:/docker/abc\n1:name=systemd:/docker/abc\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": str(512 << 20),
    }
    assert memory_bytes(a_machine(tmp_path, files)) == 512 << 20


def test_files_that_make_no_sense_are_passed_over(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "nonsense\n0::\n", "sys/fs/cgroup/memory.max": "-7"}
    assert memory_bytes(a_machine(tmp_path, files)) == 16 * GIB
    assert memory_bytes(tmp_path / "nowhere") == UNKNOWN_BYTES


def test_this_machine_has_some() -> None:
    assert memory_bytes() > 64 << 20
