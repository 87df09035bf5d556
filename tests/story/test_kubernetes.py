"""The manifests are of the form that a cluster takes, and agree with the bot that they start."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from config.settings import _SECRET, Settings
from gateway.cli import cli
from tests.house import house

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"


def resources(*kinds: str) -> list[dict[str, Any]]:
    found = [one for path in sorted(FOLDER.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text("utf-8"))]
    return [one for one in found if one["kind"] in kinds or not kinds]


def pods() -> Iterator[dict[str, Any]]:
    for one in resources("Deployment", "Job"):
        yield one["spec"]["template"]["spec"]
    for one in resources("CronJob"):
        yield one["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def test_each_is_what_a_cluster_takes() -> None:
    import kubernetes_validate  # seconds of loading: no other test's worker needs it

    for one in resources():
        if one["kind"] != "Kustomization":
            kubernetes_validate.validate(one, "1.30", strict=True)
    (kustomization,) = resources("Kustomization")
    alone = {"kustomization.yaml", "secrets.example.yaml", "migrate.yaml"}  # by hand, at their own times
    assert {*kustomization["resources"], *alone} == {path.name for path in FOLDER.glob("*.yaml")}


def test_each_pod_is_unprivileged_bounded_and_calls_a_command_that_there_is() -> None:
    for pod in pods():
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"].keys() == {"requests", "limits"}
        assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
        name, command, *options = container["args"]
        assert name == "chat-chat"
        known = {word for option in cli.commands[command].params for word in option.opts}
        assert {word for word in options if word.startswith("--")} <= known
    claims = {one["metadata"]["name"] for one in resources("PersistentVolumeClaim")}
    used = [volume.get("persistentVolumeClaim") for pod in pods() for volume in pod["volumes"]]
    assert {one["claimName"] for one in used if one} == claims


def test_settings_and_secrets_are_those_that_the_bot_reads() -> None:
    read = set(re.findall(r'read\("([A-Z_]+)"', (ROOT / "config" / "settings.py").read_text("utf-8")))
    (given,) = resources("ConfigMap")
    Settings.from_env(given["data"], dotenv=None)
    own = {one["name"] for pod in pods() for one in pod["containers"][0].get("env", ())}
    assert (given["data"].keys() | own) - read == set()
    secrets = {one["metadata"]["name"]: one["stringData"] for one in resources("Secret")}
    assert secrets["secrets"].keys() - set(_SECRET) == set()
    Settings.from_env(secrets["secrets"], dotenv=None)
    for pod in pods():  # where the bot looks for them
        assert {"name": "secrets", "mountPath": "/run/secrets", "readOnly": True} in pod["containers"][0][
            "volumeMounts"
        ]


def test_pods_are_given_the_time_they_take_to_end_and_budgets_name_them() -> None:
    (given,) = resources("ConfigMap")
    grace = float(given["data"]["SHUTDOWN_GRACE"])
    for one in resources("Deployment"):
        pod = one["spec"]["template"]["spec"]
        pause = pod["containers"][0].get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["", "0"])
        assert pod["terminationGracePeriodSeconds"] >= grace + float(pause[1]) + 5
    labels = {tuple(one["spec"]["selector"]["matchLabels"].items()) for one in resources("Deployment")}
    budgets = {tuple(one["spec"]["selector"]["matchLabels"].items()) for one in resources("PodDisruptionBudget")}
    assert budgets == labels


async def test_what_is_probed_and_counted_is_there(tmp_path: Path, redis_url: str) -> None:
    serve, worker = resources("Deployment")
    (container,) = serve["spec"]["template"]["spec"]["containers"]
    assert container["args"][-1] == str(container["ports"][0]["containerPort"])
    probes = [container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert {probe["port"] for probe in probes} == {container["ports"][0]["name"]}
    (scaled,) = resources("HorizontalPodAutoscaler")
    (metric,) = scaled["spec"]["metrics"]
    async with house(tmp_path, redis_url) as home, aiohttp.ClientSession() as http:
        for probe in probes:
            async with http.get(home.url + probe["path"]) as answer:
                assert answer.status == 200
        async with http.get(f"{home.url}/metrics") as answer:
            assert f"\n{metric['external']['metric']['name']} " in await answer.text()
    (works,) = worker["spec"]["template"]["spec"]["containers"]
    (alive,) = works["env"]
    for name in ("startupProbe", "livenessProbe"):
        assert alive["value"] in " ".join(works[name]["exec"]["command"])
