"""Whatever a consumer can be told or asked is in its guide."""

from __future__ import annotations

from pathlib import Path

import pytest

import ottla
import ottla.aio
from ottla.config.client import ConsumerConfig

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "clients-consumer.md").read_text()


@pytest.mark.parametrize("name", sorted(ConsumerConfig.SETTINGS))
def test_every_setting_is_listed_with_its_default(name: str) -> None:
    setting = ConsumerConfig.SETTINGS[name]
    shown = setting.show(setting.default)
    row = f"| `{name}` | {shown} | {setting.doc} |" if shown else f"| `{name}` | | {setting.doc} |"
    assert row in GUIDE


def test_every_public_method_of_both_faces_is_named() -> None:
    for face in (ottla.Consumer, ottla.aio.Consumer):
        for name in vars(face):
            assert name.startswith("_") or name in GUIDE, name


def test_every_error_is_explained() -> None:
    for error in (
        "CommitFailed", "ConcurrentUse", "Fenced", "LogTruncated", "NoOffset", "OffsetOutOfRange",
        "SerializationError", "UserError", "Wakeup",
    ):  # fmt: skip
        assert f"`{error}`" in GUIDE
        assert error in ottla.__all__
