"""The example of Spark Declarative Pipelines means what it should.

Spark runs these through Spark Connect, which asks for packages that nothing else here needs
(`pyspark[pipelines]`: gRPC and its kin). So the example's definitions are collected with Spark's
own registry, and its flow is run in a session as the runner would run it.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import yaml
from pyspark.pipelines.flow import AutoCdcFlow, Flow
from pyspark.pipelines.graph_element_registry import (
    GraphElementRegistry,
    graph_element_registration_context,
)
from pyspark.pipelines.output import Output, Sink

from tests.spark.pipelines.jobs import Sent, Stage
from tools.tidy import ROOT

EXAMPLE = ROOT / "examples" / "declarative"


class Registry(GraphElementRegistry):
    """Remembers what a pipeline's files define."""

    def __init__(self) -> None:
        self.outputs: dict[str, Output] = {}
        self.flows: list[Flow] = []

    def register_output(self, output: Output) -> None:
        self.outputs[output.name] = output

    def register_flow(self, flow: Flow) -> None:
        self.flows.append(flow)

    def register_auto_cdc_flow(self, flow: AutoCdcFlow) -> None:
        raise AssertionError("the example has none")

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        raise AssertionError("the example has none")


@pytest.mark.spec("APP-06")
def test_the_example_reads_one_topic_and_writes_another(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVER", stage.servers)
    stage.topics("page-views", "clean-views")
    stage.send("page-views", [Sent(b'{"user": "ann"}', b"1"), Sent(b'{"user": "robot"}', b"2")])
    registry = Registry()
    spec = yaml.safe_load((EXAMPLE / "spark-pipeline.yml").read_text())
    assert spec["libraries"] == [{"glob": {"include": "transformations/**"}}]
    with graph_element_registration_context(registry):
        runpy.run_path(str(EXAMPLE / "transformations" / "clean.py"))
    (flow,) = registry.flows
    sink = registry.outputs[flow.target]
    assert isinstance(sink, Sink)
    writer = flow.func().writeStream.format(sink.format).options(**sink.options)
    writer = writer.option("checkpointLocation", str(stage.folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert [one.key for one in stage.read("clean-views")] == [b"1"]
