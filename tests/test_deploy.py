"""The files in deploy/: they name what there is, and nginx does what its configuration says of it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx2
import pytest
import yaml

from api.bodies import IMPORT_BYTES
from app import VERSION
from benchmarks.serving import ROOT, free_port
from config import Settings
from tests.application import an_app, run_command
from tests.forks import Fork
from tests.model_server import Exchange, Reply
from tests.processes import eventually, migrated_server, model_settings

DEPLOY = ROOT / "deploy"
NGINX = (DEPLOY / "nginx.conf").read_text("utf-8")
KEY = "a-key-of-the-test-of-nginx"


@dataclass(frozen=True)
class Held(Reply):
    """One piece, and the rest once the event is set."""

    rest: threading.Event

    def send(self, exchange: Exchange) -> None:
        exchange.begin()
        exchange.event(exchange.chunk({"content": "One"}))
        if self.rest.wait(2.0):
            exchange.event(exchange.chunk({"content": " two."}, "stop"))
        exchange.end()


def test_what_is_set_is_a_setting():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    manifests = {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kubernetes/recap.yaml").read_text("utf-8"))}
    image = re.search(r"^ENV (.+)$", (DEPLOY / "Containerfile").read_text("utf-8"), re.M)
    assert image and {"HOST=0.0.0.0", "RECAP_DATA_DIR=/data"} < set(image[1].split())
    for named in (
        services["node1"]["environment"],
        services["node2"]["environment"],
        manifests["ConfigMap"]["data"] | manifests["Secret"]["stringData"],
    ):
        assert {"DATABASE_URL", "RECAP_API_KEYS", "TRUSTED_PROXIES"} <= set(named) <= set(Settings.variables())
    nodes = re.findall(r"server (\w+):8000", NGINX)
    assert nodes == [name for name in services if name.startswith("node")]


def test_the_dashboard_shows_metrics_that_there_are():
    dashboard = json.loads((DEPLOY / "grafana.json").read_text("utf-8"))
    described = set(re.findall(r"^\| `(recap_\w+)`", (ROOT / "docs/operations.md").read_text("utf-8"), re.M))
    shown = {name for panel in dashboard["panels"] for query in panel["targets"] for name in metrics(query["expr"])}
    assert shown <= described
    left_out = described - shown
    assert left_out == {"recap_metrics_shared", "recap_recalled_excerpts_total"}, "every other metric has a panel"
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


def metrics(expression: str) -> list[str]:
    return [re.sub(r"_seconds_(bucket|sum|count)$", "_seconds", name) for name in re.findall(r"recap_\w+", expression)]


@contextmanager
def nginx(folder: Path, *nodes: int) -> Iterator[str]:
    """The address of an nginx with the configuration of deploy/, in front of nodes at these ports."""
    port = free_port()
    text = re.sub(r" (/tmp|/var/log/nginx)/", f" {folder}/", NGINX).replace("listen 8080", f"listen 127.0.0.1:{port}")
    place = re.search(r"server node1:8000 (.+;)", text)
    assert place
    listed = "\n".join(f"server 127.0.0.1:{node} {place[1]}" for node in nodes)
    text = re.sub(r"server node\d:8000 .+;", "", text.replace(place[0], listed))
    text = re.sub(r"resolver .+;", "", text).replace(" resolve ", " ")  # as on a machine, where addresses are no names
    if os.geteuid() == 0:
        text = "user root;\n" + text  # else its workers could not reach the folder
    (folder / "nginx.conf").write_text(text)
    command = ["nginx", "-c", str(folder / "nginx.conf"), "-g", f"daemon off; pid {folder}/nginx.pid;"]
    with (folder / "nginx.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nginx") is None, reason="no nginx: apt-get install nginx")
def test_nginx_streams_bounds_bodies_and_does_without_a_dead_node(tmp_path, migrated, model_server):
    settings = {"RECAP_API_KEYS": f"default:{KEY}", "TRUSTED_PROXIES": "1", "WEB_WORKERS": "1"}
    with (
        migrated_server(tmp_path, migrated, **model_settings(model_server.url), **settings) as server,
        nginx(tmp_path, free_port(), server.port) as url,  # nobody listens at the first
        httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30, trust_env=False) as client,
    ):
        assert eventually(lambda: answered(client) == 502)
        refused(client.get("/health/live"), 502, "no_node")
        server.start()
        assert eventually(lambda: answered(client) == 200)
        assert all(answered(client) == 200 for _ in range(20)), "no request meets the dead node"

        rest = threading.Event()
        model_server.main.queue(Held(rest))
        with client.stream("POST", "/api/chat", json={"message": "Hello", "stream": True}) as reply:
            lines = reply.iter_lines()
            assert any('"One"' in line for line in lines)  # the model still holds back the rest
            rest.set()
            left = "".join(lines)
        assert '" two."' in left and "[DONE]" in left

        most = Settings.model_fields["max_body_bytes"].default
        refused(post(client, "/api/chat", most + 1), 413, "body_too_large")
        assert post(client, "/api/chat", most).json()["error"]["code"] == "message_too_large", "Recap has read it"
        assert post(client, "/api/import", most + 1).json()["error"]["code"] != "body_too_large"
        assert f"client_max_body_size {IMPORT_BYTES >> 30}g;" in NGINX
        assert client.get("/metrics").status_code == 404


def answered(client: httpx2.Client) -> int | None:
    try:
        return client.get("/health/live").status_code
    except httpx2.TransportError:
        return None


def post(client: httpx2.Client, path: str, size: int) -> Any:
    body = b'{"message": "%s"}'
    content = body % (b"a" * (size - len(body) + 2))
    return client.post(path, content=content, headers={"Content-Type": "application/json"})


def refused(answer: Any, status: int, code: str) -> None:
    """It is refused by nginx, in the shape of Recap's errors."""
    assert (answer.status_code, answer.headers["Server"]) == (status, "nginx")
    assert answer.json()["error"]["code"] == code and answer.json()["error"].keys() == {"message", "type", "code"}


# -- the package

# Of the repository: what a wheel has no use for.
LEFT_OUT = re.compile(r"(tests|benchmarks|clients|deploy|docs|\.ci)/|[^/]*$")
WIRING = {"app.py", "wsgi.py", "gunicorn.conf.py", "gunicorn_worker.py"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (found,) = folder.glob("*.whl")
    return found


def pip(python: str, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--python", python, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_wheel_has_one_package_with_every_file_and_the_pinned_dependencies(wheel):
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = HeaderParser().parsestr(archive.read(f"recap_server-{VERSION}.dist-info/METADATA").decode())
        licences = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
    assert {name.partition("/")[0] for name in names} == {"recap_server"}
    wanted = {path for path in listed if not LEFT_OUT.match(path)} | WIRING
    assert {f"recap_server/{path.removeprefix('recap_server/')}" for path in wanted} <= names
    pinned = re.findall(r"^[\w.\[\]-]+==\S+", (ROOT / "requirements.txt").read_text("utf-8"), re.M)
    needed = {text for text in metadata.get_all("Requires-Dist", []) if ";" not in text}
    assert needed == set(pinned) and len(pinned) > 60
    assert set(metadata.get_all("Provides-Extra", [])) == {"mcp", "minilm", "postgres", "traces"}
    assert metadata["License-Expression"] == "Apache-2.0" and len(licences) == 1


@pytest.mark.slow
def test_the_command_tells_its_version_and_writes_no_migrations(tmp_path):
    version, commands = tmp_path / "version", tmp_path / "commands"
    environ = os.environ | {"RECAP_DATA_DIR": str(tmp_path / "data")}
    assert Fork("recap", ("--version",), environ, version).wait(60) == 0
    assert Fork("recap", ("db", "--help"), environ, commands).wait(60) == 0
    assert version.read_text().strip() == VERSION
    assert "upgrade" in commands.read_text() and "migrate" not in commands.read_text()


@pytest.mark.slow
def test_an_installed_recap_serves_from_any_folder(wheel, tmp_path):
    """In an environment with the wheel and the pinned packages, in a folder whose modules have the names of Recap's."""
    venv.create(tmp_path / "venv", symlinks=True)
    python, recap = (str(tmp_path / "venv/bin" / name) for name in ("python", "recap"))
    pip(python, "install", "--no-deps", "--no-compile", str(wheel))
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "pinned.pth").write_text(sysconfig.get_path("purelib"))  # those that these tests have
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("app", "api", "config", "models", "wsgi", "gunicorn", "flask"):
        (folder / f"{name}.py").write_text("raise SystemExit('not Recap')")
    port = free_port()
    (folder / ".env").write_text(f"PORT={port}\nWEB_WORKERS=1\n")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OPENAI"))}

    with subprocess.Popen([recap, "serve"], cwd=folder, env=environ, stderr=subprocess.PIPE) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            assert eventually(lambda: is_up(url), 90.0)  # a busy machine's
            for path in ("/", "/static/js/main.js", "/openapi.json", "/docs/"):
                assert httpx2.get(url + path, trust_env=False, verify=False).status_code == 200, path
            said = {"session_id": "cats", "user_id": "ada", "message": "My cat is called Miso."}
            assert httpx2.post(f"{url}/api/chat", json=said, trust_env=False).json()["reply"]
        finally:
            server.terminate()
        assert server.wait(30) == 0
    assert (folder / "data/recap.db").exists()
    outside = subprocess.run(
        [python, "-c", "import recap_server, models"], cwd="/", env=environ, capture_output=True, text=True
    )
    assert "No module named 'models'" in outside.stderr, "only the command has Recap's modules on its path"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare")
def test_the_first_process_of_a_container_ends_on_sigterm_while_it_starts(tmp_path):
    """Such a process ignores signals that it does not handle, and gunicorn handles none until it has loaded Recap."""
    command = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-m", "recap_server", "serve"]
    environ = os.environ | {"PYTHONPATH": str(ROOT), "RECAP_DATA_DIR": str(tmp_path), "PORT": str(free_port())}
    with subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=subprocess.DEVNULL) as starting:
        try:
            # It upgrades the database, and then becomes gunicorn.
            assert eventually(lambda: (tmp_path / "recap.db").exists(), 60.0)
            children = Path(f"/proc/{starting.pid}/task/{starting.pid}/children")
            os.kill(int(children.read_text()), signal.SIGTERM)
            assert starting.wait(60) == 128 + signal.SIGTERM
        finally:
            starting.kill()


def test_serve_upgrades_the_database_unless_told_not_to(tmp_path, monkeypatch):
    started: list[list[str]] = []
    monkeypatch.setattr("os.execve", lambda program, arguments, environ: started.append(arguments))
    for option, is_made in (["--no-upgrade"], False), ([], True):
        with an_app(tmp_path) as app:
            assert run_command(app, "serve", *option).exit_code == 0
        assert (tmp_path / "recap.db").exists() == is_made
    assert [arguments[-1] for arguments in started] == ["wsgi:app"] * 2


def is_up(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/health/ready", trust_env=False, verify=False).status_code == 200
    except httpx2.TransportError:
        return False
