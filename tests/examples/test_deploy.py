"""The deployment examples: commands that Rota accepts, variables that exist, and times that fit together."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
import yaml

from amounts import IS_SOAK
from observe.promql import Query, Sample
from rota.cli.main import main
from rota.config.environment import CONFIG
from rota.config.loader import resolve
from rota.config.settings import KEYS
from rota.errors import BadSettings
from rota.inspector.own_nodes import ANSWER_WITHIN
from rota.model.micros import SECOND, span_of

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "deploy"
AFTER_DRAIN = 10.0  # seconds that docs/guides/supervisor.md gives a process to end after its drain
WEB_STOP = 10.0  # seconds that `rota web` gives open requests, at most
START = 30.0  # seconds for the imports of an app, beside the wait for its store
FIT = {"replace-me": "0123456789abcdef"}  # what a reader puts in place of a placeholder
VARIABLES = {CONFIG, *(key.variable for key in KEYS.values())}


class Process(NamedTuple):
    """What one manifest runs, and how long it may take to stop."""

    where: str
    words: list[str]
    stops_within: float | None = None


def documents(path: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def manifests() -> list[dict[str, Any]]:
    return [one for path in sorted((FOLDER / "kubernetes").glob("*.yaml")) for one in documents(path)]


def pods() -> list[dict[str, Any]]:
    return [one["spec"]["template"]["spec"] for one in manifests() if one["kind"] in {"Deployment", "Job"}]


def containers() -> list[dict[str, Any]]:
    return [container for pod in pods() for container in pod["containers"]]


def compose() -> dict[str, dict[str, Any]]:
    text = re.sub(r"\$\{\w+:\?[^}]*\}", "x" * 32, (FOLDER / "compose.yaml").read_text())  # what the caller sets
    return yaml.safe_load(text)["services"]


def units() -> dict[str, configparser.ConfigParser]:
    found = {}
    for path in sorted((FOLDER / "systemd").glob("*.service")):
        found[path.name] = configparser.ConfigParser(interpolation=None)
        found[path.name].optionxform = str  # type: ignore[method-assign, assignment]
        found[path.name].read(path)
    return found


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's lines: instruction and the rest."""
    text = (FOLDER / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def processes() -> list[Process]:
    """All services that run Rota."""
    of_pods = [
        Process(container["name"], container["command"], pod.get("terminationGracePeriodSeconds"))
        for pod in pods()
        for container in pod["containers"]
    ]
    of_compose = [
        Process(f"compose {name}", service["command"], seconds(service["stop_grace_period"]))
        for name, service in compose().items()
        if "command" in service
    ]
    of_units = [
        Process(
            name, shlex.split(unit["Service"]["ExecStart"].replace("%i", "1")), unit["Service"].get("TimeoutStopSec")
        )
        for name, unit in units().items()
    ]
    of_image = [Process("Dockerfile", json.loads(rest)) for word, rest in instructions() if word == "CMD"]
    return of_pods + of_compose + of_units + of_image


def checks() -> list[Process]:
    """All commands that probe."""
    probes = [probe for container in containers() for name, probe in container.items() if name.endswith("Probe")]
    of_pods = [Process("probe", probe["exec"]["command"]) for probe in probes if "exec" in probe]
    of_image = [
        Process("HEALTHCHECK", json.loads(rest.partition("CMD ")[2]))
        for word, rest in instructions()
        if word == "HEALTHCHECK"
    ]
    return of_pods + of_image


def seconds(text: str) -> float:
    return span_of(text) / SECOND


def parsed(words: list[str]) -> click.Context:
    """The command line of Rota, read by its real parser and not run."""
    assert Path(words[0]).name == "rota", words
    group = main.make_context("rota", words[1:], resilient_parsing=False)
    name, command, rest = main.resolve_command(group, [*group._protected_args, *group.args])
    assert command is not None, words
    return command.make_context(name, rest, parent=group)


def commands_in_text() -> list[str]:
    """The `rota …` commands of the guide's and the examples' code blocks, and of comments."""
    blocks = [
        block
        for path in (ROOT / "docs/guides/deploying.md", FOLDER / "README.md")
        for block in re.findall(r"```(?:console|sh)\n(.*?)```", path.read_text(), flags=re.DOTALL)
    ]
    found = re.findall(r"^\$ (?:\S*/)?(rota [^#|\n]*)", "\n".join(blocks), flags=re.MULTILINE)
    return [line.strip() for line in found]


@pytest.mark.parametrize("process", [*processes(), *checks()], ids=lambda process: process.where)
def test_each_command_is_accepted_by_the_command_line(process, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parsed(process.words)


def test_the_commands_of_the_guide_are_accepted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line in commands_in_text():
        parsed(shlex.split(line))


def test_a_misspelt_option_is_refused_by_this_check(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(click.NoSuchOption):
        parsed(["rota", "run", "--wait-for-stores", "60s"])


def test_every_variable_is_a_setting_with_a_value_that_it_accepts(tmp_path, monkeypatch):
    maps = [values for one in manifests() for name, values in one.items() if name in {"data", "stringData"}]
    maps += [service.get("environment", {}) for service in compose().values()]
    env_file = (FOLDER / "systemd" / "rota.env").read_text()
    maps.append(dict(line.split("=", 1) for line in env_file.splitlines() if not line.startswith("#")))
    for word, rest in instructions():
        if word == "ENV":
            maps.append(dict(pair.split("=", 1) for pair in rest.split()))
    named = {name for values in maps for name in values if name.startswith("ROTA_")}
    assert named <= VARIABLES
    assert {"ROTA_STORE", "ROTA_APP", "ROTA_WEB_TOKEN"} <= named
    for values in maps:
        with monkeypatch.context() as patched:
            for name, value in values.items():
                if name.startswith("ROTA_"):
                    patched.setenv(name, FIT.get(value, value))
            resolve(tmp_path)


def test_a_token_that_was_not_replaced_is_refused(tmp_path, monkeypatch):
    (values,) = [one["stringData"] for one in manifests() if "stringData" in one]
    monkeypatch.setenv("ROTA_WEB_TOKEN", values["ROTA_WEB_TOKEN"])
    with pytest.raises(BadSettings):
        resolve(tmp_path)


@pytest.mark.parametrize("process", processes(), ids=lambda process: process.where)
def test_a_stop_has_time_for_the_drain(process, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = parsed(process.words)
    if process.stops_within is None or given.info_name not in {"run", "worker", "scheduler"}:
        return
    drain = seconds(given.params["drain"] or "25s")
    assert float(process.stops_within) >= drain + AFTER_DRAIN


def test_probes_leave_the_time_that_the_commands_need(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    probed = [container for container in containers() if "livenessProbe" in container]
    assert {container["name"] for container in probed} == {"worker", "scheduler", "web"}
    for container in probed:
        options = parsed(container["command"]).params
        startup, liveness = container["startupProbe"], container["livenessProbe"]
        assert startup["periodSeconds"] * startup["failureThreshold"] >= seconds(options["wait_for"]) + START
        if "stuck_after" in options:  # the parent process replaces a frozen worker first
            patience = liveness["periodSeconds"] * liveness["failureThreshold"]
            assert patience > seconds(options["stuck_after"]) + ANSWER_WITHIN
        for probe in (startup, liveness):
            if "exec" in probe:
                assert probe["timeoutSeconds"] > ANSWER_WITHIN


def test_probes_over_http_ask_paths_and_ports_that_are_served(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for container in containers():
        options = parsed(container["command"]).params
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
        served = {"metrics": options.get("metrics_port"), "http": options.get("port")}
        for name, probe in container.items():
            if name.endswith("Probe") and "httpGet" in probe:
                port = probe["httpGet"]["port"]
                assert ports[port] == served[port]
                assert probe["httpGet"]["path"] == ("/ready" if name == "readinessProbe" else "/live")


def test_the_web_pods_end_within_their_grace_period():
    [pod] = [pod for pod in pods() if pod["containers"][0]["name"] == "web"]
    pause = float(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] >= pause + WEB_STOP


def test_selectors_find_the_pods_and_references_name_what_exists():
    by_kind = {
        kind: [one for one in manifests() if one["kind"] == kind] for kind in {one["kind"] for one in manifests()}
    }
    labels = [one["spec"]["template"]["metadata"]["labels"] for one in by_kind["Deployment"]]
    for one in by_kind["Deployment"] + by_kind["PodDisruptionBudget"]:
        assert one["spec"]["selector"]["matchLabels"] in labels
    assert [one["spec"]["selector"] in labels for one in by_kind["Service"]] == [True]
    names = {(one["kind"], one["metadata"]["name"]) for one in manifests()}
    for container in containers():
        assert {("ConfigMap", source["configMapRef"]["name"]) for source in container["envFrom"][:1]} <= names
        assert {("Secret", source["secretRef"]["name"]) for source in container["envFrom"][1:]} <= names
    [scaled] = by_kind["ScaledObject"]
    assert ("Deployment", scaled["spec"]["scaleTargetRef"]["name"]) in names


def test_the_autoscaling_query_is_the_age_of_the_queue_unless_it_is_paused():
    [scaled] = [one for one in manifests() if one["kind"] == "ScaledObject"]
    query = scaled["spec"]["triggers"][0]["metadata"]["query"]

    def asked(*, is_paused: bool) -> list[float]:
        nodes = [{"queue": "default", "instance": instance} for instance in "ab"]
        ages = [Sample("rota_queue_oldest_age_seconds", labels, 90.0) for labels in nodes]
        others = [Sample("rota_queue_oldest_age_seconds", {"queue": "mail", "instance": "a"}, 900.0)]
        paused = [Sample("rota_queue_paused", labels, float(is_paused)) for labels in nodes]
        return [value for _, value in Query(query, [], [*ages, *others, *paused]).run()]

    assert asked(is_paused=False) == [90.0]
    assert asked(is_paused=True) == []


def test_the_image_copies_what_the_clone_has_and_its_filter_lets_through():
    sources = [rest.split()[:-1] for word, rest in instructions() if word == "COPY" and not rest.startswith("--from")]
    copied = {source for line in sources for source in line}
    kept = {line[1:] for line in (FOLDER / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied == kept
    assert all((ROOT / source).exists() for source in copied)
    required = re.search(r'requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text())
    images = [rest for word, rest in instructions() if word == "FROM"]
    assert images
    assert all(int(re.match(r"python:3\.(\d+)-slim", image)[1]) >= int(required[1]) for image in images)


@pytest.mark.skipif(not IS_SOAK, reason="it installs packages; `make soak` runs it")
def test_the_steps_of_the_image_make_an_app_that_runs(tmp_path):
    """There is no Docker engine here: its COPY and RUN steps are done in an empty folder, which stands for the root."""
    images = iter(("build", "run"))
    image, folder = "", tmp_path

    def inside(path: str) -> Path:
        return tmp_path / image / path.lstrip("/") if path.startswith("/") else folder / path

    for word, rest in instructions():
        if word == "FROM":
            image = next(images)
        elif word == "WORKDIR":
            folder = inside(rest)
            folder.mkdir(parents=True)
        elif word == "COPY" and rest.startswith("--from"):
            continue  # a virtual environment cannot be moved, so the one of the first image is used
        elif word == "COPY":
            *sources, to = rest.split()
            for source in sources:
                target = inside(to) / source if to == "./" else inside(to)
                (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, target)
        elif word == "RUN":
            step = rest.replace("python -m", f"{sys.executable} -m").replace("/opt/", f"{tmp_path}/{image}/opt/")
            subprocess.run(shlex.split(step), cwd=folder, check=True)
    rota = tmp_path / "build" / "opt" / "rota" / "bin" / "rota"
    env = {"ROTA_APP": "shop.jobs:app", "ROTA_STORE": f"sqlite:///{tmp_path}/rota.db", "PATH": os.environ["PATH"]}
    for words in (["migrate"], ["worker", "--until-empty"], ["schedules", "list"]):
        subprocess.run([rota, *words], cwd=folder, env=env, check=True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_units(tmp_path):
    for path in (FOLDER / "systemd").iterdir():
        text = path.read_text().replace("/srv/shop/venv/bin/rota", sys.executable)  # it must exist
        (tmp_path / path.name.replace("@.", "@1.")).write_text(text)
    names = sorted(path.name for path in tmp_path.iterdir() if path.suffix in {".service", ".target"})
    assert len(names) == 5
    verified = subprocess.run(
        [shutil.which("systemd-analyze"), "verify", "--recursive-errors=no", *names],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (verified.returncode, verified.stderr) == (0, "")
