"""The manifest of the guide for Kubernetes: its parts fit together. No cluster runs it here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ottla.spark.pipelines import templates
from ottla.spark.pipelines.yaml_file import open_pipeline
from tools.tidy import ROOT

GUIDE = ROOT / "docs" / "spark-clusters.md"


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
