"""The manifest of the guide for Kubernetes: its parts fit together, and its role allows what
Spark's driver asks. The API server is a small one of the tests': no cluster runs it here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ottla.spark.pipelines import templates
from ottla.spark.pipelines.yaml_file import open_pipeline
from tests.spark.kubernetes_api import KubernetesApi
from tests.spark.quick_jvm import QUICK_SPARK
from tools.tidy import ROOT

GUIDE = ROOT / "docs" / "spark-clusters.md"
DEADLINE_S = 240
PROGRAM = """
import sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master(sys.argv[1])
for setting in sys.argv[2:]:
    builder = builder.config(*setting.split("=", 1))
spark = builder.getOrCreate()
sys.stdin.readline()
spark.stop()
"""
"""A driver that does nothing but start executors, until it is told to stop."""


@pytest.fixture
def blocks() -> list[Any]:
    """The YAML documents of the guide's part on Kubernetes."""
    text = GUIDE.read_text().split("## Kubernetes", 1)[1]
    found = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    return [document for block in found for document in yaml.safe_load_all(block)]


def of_kind(blocks: list[Any], kind: str) -> Any:
    [found] = [block for block in blocks if block.get("kind") == kind]
    return found


def test_the_driver_runs_as_an_account_that_may_manage_pods(blocks: list[Any]) -> None:
    account, role = of_kind(blocks, "ServiceAccount"), of_kind(blocks, "Role")
    binding, job = of_kind(blocks, "RoleBinding"), of_kind(blocks, "Job")
    place = account["metadata"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", **place}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    namespaces = {block["metadata"]["namespace"] for block in (account, role, binding, job)}
    assert namespaces == {"pipelines"}
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == place["name"]
    [rule] = role["rules"]
    assert {"pods", "configmaps"} <= set(rule["resources"])
    assert {"create", "get", "list", "watch", "delete"} <= set(rule["verbs"])


def test_the_profile_of_the_manifest_is_one_of_a_pipeline_and_fits_the_job(
    blocks: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = of_kind(blocks, "Job")["spec"]["template"]["spec"]
    [driver] = pod["containers"]
    for variable in driver["env"]:
        monkeypatch.setenv(variable["name"], f"the pod's {variable['name']}")
    [profiles] = [block for block in blocks if "profiles" in block]
    path = tmp_path / "views.yaml"
    path.write_text(templates.text("views") + yaml.safe_dump(profiles))
    pipeline = open_pipeline(path, (), driver["command"][-1])
    given = pipeline.spark
    assert given["spark.kubernetes.container.image"] == driver["image"]
    assert given["spark.kubernetes.driver.pod.name"] == "the pod's POD_NAME"
    assert given["spark.driver.host"] == "the pod's POD_IP"
    claim = "spark.kubernetes.executor.volumes.persistentVolumeClaim.shared"
    [shared] = [volume for volume in pod["volumes"] if volume["name"] == "shared"]
    claim_name = shared["persistentVolumeClaim"]["claimName"]
    assert given[f"{claim}.options.claimName"] == claim_name
    mounted = given[f"{claim}.mount.path"]
    assert {"name": "shared", "mountPath": mounted} in driver["volumeMounts"]
    assert pipeline.checkpoint.startswith(mounted)


@pytest.mark.timeout(300)
def test_the_role_allows_what_the_driver_asks(blocks: list[Any], tmp_path: Path) -> None:
    [profiles] = [block["profiles"] for block in blocks if "profiles" in block]
    given = profiles["kubernetes"]["spark"]
    given |= {"spark.kubernetes.driver.pod.name": "views-x1", "spark.driver.host": "127.0.0.1"}
    quick = {**QUICK_SPARK, "spark.scheduler.maxRegisteredResourcesWaitingTime": "0s"}
    words = [f"{name}={value}" for name, value in {**quick, **given}.items()]
    with KubernetesApi() as api, (tmp_path / "log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, f"k8s://{api.url}", *words],
            cwd=tmp_path,
            env={**os.environ, "KUBECONFIG": str(tmp_path / "none")},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
        try:
            api.wait_for_pods(2, DEADLINE_S)
        finally:
            driver.communicate(b"\n", timeout=DEADLINE_S)
    said = (tmp_path / "log").read_text()[-4_000:]
    assert driver.returncode == 0, said
    [rule] = of_kind(blocks, "Role")["rules"]
    allowed = {(verb, resource) for verb in rule["verbs"] for resource in rule["resources"]}
    assert {("create", "pods"), ("watch", "pods"), ("deletecollection", "pods")} <= api.asked
    assert api.asked <= allowed
    for pod in [made for made in api.created if made["kind"] == "Pod"]:
        [owner] = pod["metadata"]["ownerReferences"]
        assert owner["name"] == "views-x1"
        mounts = pod["spec"]["containers"][0]["volumeMounts"]
        assert "/shared" in {mount["mountPath"] for mount in mounts}
