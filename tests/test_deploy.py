"""The files for installing it: read by the programs that they are for, where these are installed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from app.config import Settings
from app.main import create_app
from tests.command import triage
from tests.served import starter_settings
from tests.web.conftest import TestClient

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "app" / "deploy"
GUIDE = ROOT / "app" / "guide"
SETTINGS = (GUIDE / "settings.md").read_text(encoding="utf-8")
OPERATIONS = (GUIDE / "operations.md").read_text(encoding="utf-8")
PROGRAM = "/opt/triage/.venv/bin/triage"


def tool(name: str) -> str:
    """Its path; servers are often out of a person's own path."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def accepts(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def unit() -> str:
    return (DEPLOY / "triage.service").read_text(encoding="utf-8")


def check_command(command: str) -> None:
    """That `triage …` has this command with these options; nothing is run."""
    name, *options = shlex.split(command)
    found = triage(name, "--help", folder=ROOT)
    assert found.returncode == 0, found.stderr
    for option in options:
        known = option in found.stdout.decode()
        assert not option.startswith("--") or known, f"triage {name} has no {option}"


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    path = tmp_path / "triage.service"
    path.write_text(unit().replace(PROGRAM, "/bin/true"), encoding="utf-8")
    accepts(tool("systemd-analyze"), "verify", path)


def test_the_unit_runs_commands_that_there_are() -> None:
    commands = re.findall(rf"^Exec\w+={re.escape(PROGRAM)} (.+)$", unit(), re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["up"]
    for command in commands:
        check_command(command)


def test_nginx_takes_the_site(tmp_path: Path) -> None:
    site = (DEPLOY / "nginx.conf").read_text(encoding="utf-8").replace(" ssl http2;", ";")
    # No certificate, perhaps no IPv6, and no right to the low ports: `nginx -t` opens them.
    site = re.sub(r"^ *(ssl_certificate|listen \[::\]).*\n", "", site, flags=re.MULTILINE)
    (tmp_path / "site.conf").write_text(
        re.sub(r"listen (80|443)", r"listen 127.0.0.1:18\1", site).replace("/var/log/nginx", str(tmp_path)),
        encoding="utf-8",
    )
    folders = "".join(f"{name}_temp_path {tmp_path}/{name};" for name in ("client_body", "proxy"))
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; error_log {tmp_path}/error.log; events {{}}\n"
        f"http {{ {folders} include {tmp_path}/site.conf; }}\n",
        encoding="utf-8",
    )
    accepts(tool("nginx"), "-t", "-q", "-c", tmp_path / "nginx.conf", "-e", tmp_path / "error.log")


def test_no_proxy_logs_the_address_of_a_kept_log() -> None:
    site = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    written = re.findall(r"^log_format \w+ (.+);", site, re.MULTILINE)
    assert re.findall(r"\$\w*(?:request\b|uri|referer)\w*", written[0]) == ["$logged_uri"]
    assert re.findall(r"access_log .*?(\w+);", site) == ["off", "triage"]
    assert "request>uri regexp ^/d/.+ /d/-" in (DEPLOY / "Caddyfile").read_text(encoding="utf-8")


def test_caddy_takes_its_file() -> None:
    accepts(tool("caddy"), "adapt", "--config", DEPLOY / "Caddyfile", "--adapter", "caddyfile")


def test_the_image_holds_what_the_build_needs_and_nothing_else() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line[1:] for line in ignored if line.startswith("!")}
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = build["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {
        *wheel["packages"],
        *wheel["force-include"],
        build["project"]["readme"],
        *build["project"]["license-files"],
    }
    assert "*" in ignored
    assert kept == needed | {"pyproject.toml", "requirements.lock"}
    assert all((ROOT / name).exists() for name in kept)


def test_the_container_runs_commands_that_there_are_on_a_python_that_is_supported() -> None:
    found = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    (command,) = re.findall(r'^CMD \["triage", "(\w+)"\]$', found, re.MULTILINE)
    check_command(command)
    version = re.findall(r"^FROM python:([\d.]+)-slim@sha256:[0-9a-f]{64}$", found, re.MULTILINE)[0]
    assert f"Python :: {version}" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_settings_file_names_settings_that_there_are() -> None:
    named = re.findall(r"^#?TRIAGE_(\w+)=", (DEPLOY / "triage.env").read_text(encoding="utf-8"), re.MULTILINE)
    assert {name.lower() for name in named} <= set(Settings.model_fields)
    assert all(f"`TRIAGE_{name}`" in SETTINGS for name in named)


def test_the_guide_names_every_file_and_no_other() -> None:
    named = set(re.findall(r"deploy/([\w.]+)", OPERATIONS))
    assert named == {path.name for path in DEPLOY.iterdir()}


def test_the_workflow_runs_commands_that_there_are_with_pinned_actions_and_packages() -> None:
    text = (DEPLOY / "snapshot.yml").read_text(encoding="utf-8")
    steps = [step for job in yaml.safe_load(text)["jobs"].values() for step in job["steps"]]

    assert all(re.search(r"@[0-9a-f]{40}$", step["uses"]) for step in steps if "uses" in step)
    assert re.findall(r"pip install (?!--quiet --(?:require-hashes|no-deps) )", text) == []
    commands = re.findall(r"\btriage (restore|sync|doctor|publish)\b", text)
    assert commands == ["restore", "sync", "doctor", "publish"]
    for command in commands:
        check_command(command)


def test_the_job_that_may_write_reads_no_foreign_text_and_one_step_of_each_holds_a_token() -> None:
    workflow = yaml.safe_load((DEPLOY / "snapshot.yml").read_text(encoding="utf-8"))
    build, publish = (workflow["jobs"][name] for name in ("build", "publish"))

    assert (workflow["permissions"], build["permissions"]) == ({}, {"contents": "read"})
    assert publish["permissions"] == {"contents": "write"}
    assert ["triage" in step.get("run", "") for step in publish["steps"]] == [False, False]
    for job in (build, publish):
        assert "token" not in str(job.get("env", {}))
        assert sum("github.token" in str(step) for step in job["steps"]) == 1


def test_prometheus_takes_the_alert_rules() -> None:
    accepts(tool("promtool"), "check", "rules", DEPLOY / "alerts.yml")


@pytest.mark.parametrize("name", ["alerts.yml", "grafana.json"])
def test_alerts_and_dashboard_ask_for_metrics_that_there_are(name: str, tmp_path: Path) -> None:
    found = (DEPLOY / name).read_text(encoding="utf-8")
    if name.endswith(".json"):
        panels = json.loads(found)["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
    settings = starter_settings(tmp_path)
    with TestClient(create_app(settings)) as client:
        client.post("/api/v1/diagnose", json={"log": "ValueError: x"})
        served = client.get("/metrics").text
    asked = set(re.findall(r"\btriage_\w+", found))

    assert len(asked) > 5
    served_names = {name.removesuffix("_bucket") for name in asked} & set(
        re.findall(r"^# TYPE (\w+)", served, re.M)
    )
    assert served_names == {name.removesuffix("_bucket") for name in asked}
