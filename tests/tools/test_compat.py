from pathlib import Path
from typing import Annotated

import pytest

from ottla.api import APIS
from ottla.api.api import Api, error_code
from ottla.config.broker import BrokerConfig
from ottla.config.settings import AtLeast, Doc, Dynamic, NoEffect, Settings
from tools import compat


class Sample(Settings):
    min_size: Annotated[int, AtLeast(1), Dynamic("cluster"), Doc("How small.")] = 4
    name: Annotated[str | None, Doc("This | that.")] = None
    threads: Annotated[int, Doc("How many."), NoEffect("one loop does it")] = 3


async def handler(*_: object) -> dict[str, object]:
    return {}


def test_an_api_is_shown_with_its_versions_and_who_asks() -> None:
    apis = [
        Api(0, "Produce", range(3, 14), handler, error_code, advertised_from=0),
        Api(4, "LeaderAndIsr", range(8), handler, error_code, between_brokers=True),
    ]
    assert list(compat.api_table(apis))[2:] == [
        "| 0 | Produce | 3-13 (offered from 0) | clients |",
        "| 4 | LeaderAndIsr | 0-7 | brokers |",
    ]


def test_a_setting_is_shown_with_default_bounds_scope_and_text() -> None:
    assert list(compat.setting_table(Sample.SETTINGS, compat.SCOPES))[2:] == [
        "| `min.size` | `4` | at least 1 | live, cluster-wide | How small. |",
        "| `name` | none | string | at start | This &#124; that. |",
    ]


def test_a_setting_without_effect_stands_apart_with_the_reason() -> None:
    assert list(compat.idle_table(Sample.SETTINGS))[2:] == [
        "| `threads` | `3` | one loop does it |"
    ]


def test_the_page_has_every_api_and_setting() -> None:
    page = compat.page()
    assert all(f"| {api.key} | {api.name} |" in page for api in APIS)
    assert all(f"| `{name}` |" in page for name in BrokerConfig.SETTINGS)


def test_a_stale_page_fails_the_check_and_writing_it_mends_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/compat.md").write_text("old")
    assert compat.main(["--check"], tmp_path) == 1
    assert "run make compat" in capsys.readouterr().err
    assert compat.main([], tmp_path) == 0
    assert compat.main(["--check"], tmp_path) == 0
