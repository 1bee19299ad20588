"""A setting that is offered does something; one that does nothing says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ottla
from ottla.config.broker import BrokerConfig
from ottla.config.group import GroupConfig
from ottla.config.properties import load
from ottla.config.settings import Setting
from ottla.config.topic import SYNONYMS, TopicConfig

PACKAGE = Path(ottla.__file__).parent
OUTSIDE = {
    "client",
    "cli",
    "gateway",
    "spark",
    "testing",
}  # their settings have the same names at times
READERS = "\n".join(
    path.read_text()
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.relative_to(PACKAGE).parts[0] not in OUTSIDE
    and (path.parent.name != "config" or path.name in {"group.py", "listeners.py", "zookeeper.py"})
)
SPEAK_FOR_TOPICS = {name for names in SYNONYMS.values() for name in names}
ANSWERED_BY_BROKER_CONFIG = {  # through a property or a rule of its own
    "delegation.token.master.key",
    "delegation.token.secret.key",
    "broker.id.generation.enable",
    "group.consumer.assignors",
    "internal.segment.bytes",
    "log.dir",
    "max.connections.per.ip.overrides",
    "super.users",
}
ALL = [
    *(pytest.param(setting, id=name) for name, setting in BrokerConfig.SETTINGS.items()),
    *(pytest.param(setting, id=f"topic {name}") for name, setting in TopicConfig.SETTINGS.items()),
    *(pytest.param(setting, id=f"group {name}") for name, setting in GroupConfig.SETTINGS.items()),
]


@pytest.mark.parametrize("setting", ALL)
def test_a_setting_is_read_by_a_part_of_the_broker_or_says_that_it_has_no_effect(
    setting: Setting,
) -> None:
    read = (
        bool(re.search(rf"\.{setting.attribute}\b", READERS))
        or setting.name in ANSWERED_BY_BROKER_CONFIG
        or (setting.name in BrokerConfig.SETTINGS and setting.name in SPEAK_FOR_TOPICS)
    )
    if setting.name in {"log.preallocate", "preallocate"}:  # two names of one thing
        read = False
    assert read != bool(setting.no_effect)


@pytest.mark.parametrize("setting", ALL)
def test_what_has_no_effect_says_why_in_its_text(setting: Setting) -> None:
    assert setting.doc.endswith(f"No effect here: {setting.no_effect}.") == bool(setting.no_effect)


def test_a_value_that_will_change_nothing_is_remarked_on() -> None:
    loaded = load(sets=["num.io.threads=16", "num.network.threads=3", "num.partitions=4"])
    assert loaded.warnings == ["num.io.threads has no effect: one event loop handles them"]
