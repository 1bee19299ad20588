from __future__ import annotations

import io

from tools.environment import LOCK
from tools.pip_progress import Progress, ProgressDisplay, packages_of

SAID = """\
Collecting aiokafka==0.12.0
  Downloading aiokafka-0.12.0-cp311-cp311-manylinux_2_17_x86_64.whl (1.5 MB)
Collecting pyspark==4.3.0
  Downloading pyspark-4.3.0.tar.gz (455.9 MB)
  Installing build dependencies: started
Building wheels for collected packages: pyspark
  Building wheel for pyspark (pyproject.toml): started
Installing collected packages: py4j, pyspark
Successfully installed py4j-0.10.9.9 pyspark-4.3.0
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_packages_and_bytes_are_counted() -> None:
    progress = Progress(90)
    told = []
    for line in SAID.splitlines():
        progress = progress.add_line(line)
        told.append(progress.line(7))
    assert told[1] == "setup: 1 of 90 packages, 2 MB, 7 s: downloading aiokafka (1.5 MB)"
    assert told[3] == "setup: 2 of 90 packages, 457 MB, 7 s: downloading pyspark (455.9 MB)"
    assert told[6] == "setup: 2 of 90 packages, 457 MB, 7 s: unpacking pyspark"
    assert told[-1] == "setup: 2 of 2 packages, 457 MB, 7 s: installing 2 packages"


def test_lines_are_few_where_they_stay() -> None:
    out = io.StringIO()
    shown = ProgressDisplay(90, out)
    for second, line in enumerate(SAID.splitlines()):
        shown.add_line(line, second)
    for second in range(9, 80):
        shown.add_line(None, second)
    shown.over()
    lines = out.getvalue().splitlines()
    assert [line.partition(": ")[2].partition(": ")[2] for line in lines] == [
        "downloading pyspark (455.9 MB)",
        "unpacking pyspark",
        "installing 2 packages",
        "installing 2 packages",
        "installing 2 packages",
    ]


def test_on_a_terminal_one_line_changes_and_is_gone_at_the_end() -> None:
    out = Terminal()
    shown = ProgressDisplay(90, out)
    for second, line in enumerate(SAID.splitlines()):
        shown.add_line(line, second)
    shown.over()
    assert "\n" not in out.getvalue()
    assert "downloading pyspark" in out.getvalue()
    assert out.getvalue().endswith(" \r")


def test_the_lock_file_says_how_many_there_can_be() -> None:
    assert 50 < packages_of(LOCK) < 200
