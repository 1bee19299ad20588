"""A user's mistake is told without a traceback, anybody else's with one."""

from __future__ import annotations

import os

import pytest

from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition as TP
from ottla.spark.commit_decisions import Superseded
from ottla.spark.offsets import DataLost, Loss
from ottla.spark.user_errors import HIDE, as_user_errors


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HIDE, raising=False)


@pytest.mark.parametrize(
    "mistake",
    [UserError("x"), DataLost([Loss(TP("t", 0), "gone")]), Superseded("q", "a", "b")],
)
def test_what_a_user_can_mend_has_no_traceback(
    mistake: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(type(mistake)), as_user_errors():
        raise mistake
    assert os.environ[HIDE] == "1"
    monkeypatch.delenv(HIDE)


def test_what_is_our_fault_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), as_user_errors():
        raise ZeroDivisionError
    assert HIDE not in os.environ
