"""Every template is a pipeline that says what it is for."""

from __future__ import annotations

import pytest
import yaml

from ottla.model.errors import UserError
from ottla.spark.pipelines import templates, yaml_file


@pytest.mark.parametrize("name", templates.names())
def test_a_template_is_a_pipeline(name: str) -> None:
    made = yaml_file.parse(yaml.safe_load(templates.text(name)))
    assert made.name == name
    assert len(templates.purpose(name)) > 20


def test_there_is_one_for_each_job_everybody_needs() -> None:
    jobs = {"mirror", "land", "delay", "retry", "ttl", "route", "trace", "audit", "compact"}
    assert jobs <= set(templates.names())


def test_a_name_that_is_none_gets_the_nearest() -> None:
    with pytest.raises(UserError, match="mirrors: no such template; did you mean mirror"):
        templates.text("mirrors")
