"""Every option of a client is in the guide, with its default."""

from __future__ import annotations

from pathlib import Path

import pytest

import ottla.aio
from ottla.config.client import ProducerConfig

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "clients.md").read_text()


@pytest.mark.parametrize("name", ProducerConfig.SETTINGS)
def test_an_option_of_the_producer_is_in_the_guide_with_its_default(name: str) -> None:
    setting = ProducerConfig.SETTINGS[name]
    shown = setting.show(setting.default)
    default = f"`{shown}`" if shown else ""
    assert f"| `{setting.attribute}` | {default} | {setting.doc} |" in GUIDE


@pytest.mark.spec("MON-24")
@pytest.mark.parametrize("name", ottla.aio.Producer().metrics())
def test_a_metric_of_the_producer_is_in_the_guide(name: str) -> None:
    assert f"| `{name}` | " in GUIDE
