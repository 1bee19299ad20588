"""`mypy --strict` accepts a user's program, and finds its mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

PROGRAM = Path(__file__).with_name("program.py")
WRONG = """
import ottla

with ottla.Producer() as producer:
    delivery = producer.send(5)
    name: str = delivery.result().offset
    producer.begin("now")

with ottla.Consumer("t", group_id="g") as consumer:
    for record in consumer:
        text: str = record.value
        length = len(record.value)
"""


@pytest.mark.timeout(300)
def test_a_users_program_is_typed_and_mistakes_in_one_are_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    checked = ["--strict", "--cache-dir", str(tmp_path / "cache")]
    output, _, _ = api.run([*checked, str(PROGRAM), str(wrong)])
    faults = [line for line in output.splitlines() if ": error:" in line]
    assert all("wrong.py" in fault for fault in faults), output
    assert [fault.rpartition("[")[2] for fault in faults] == [
        "arg-type]", "assignment]", "call-arg]", "assignment]", "arg-type]"
    ]  # fmt: skip
