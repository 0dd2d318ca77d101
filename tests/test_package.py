"""The wheel: `pip install .` brings the command `recap` with all that it needs, and one package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import httpx2
import pytest

from app import VERSION
from benchmarks.serving import ROOT, free_port
from tests.processes import eventually

pytestmark = pytest.mark.slow

# Of the repository: what a wheel has no use for.
LEFT_OUT = re.compile(r"(tests|benchmarks|clients|deploy|docs|\.ci)/|[^/]*$")
WIRING = {"app.py", "wsgi.py", "gunicorn.conf.py", "gunicorn_worker.py"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (found,) = folder.glob("*.whl")
    return found


def pip(python: str, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--python", python, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_has_one_package_with_every_file_and_the_pinned_dependencies(wheel: Path) -> None:
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


def test_an_installed_recap_serves_from_any_folder(wheel: Path, tmp_path: Path) -> None:
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

    def ran(*command: str) -> str:
        done = subprocess.run(
            [recap, *command], cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert ran("--version").strip() == VERSION
    unmigrated = subprocess.run(
        [recap, "serve", "--no-upgrade"], cwd=folder, env=environ, capture_output=True, timeout=60
    )
    assert unmigrated.returncode and b"recap db upgrade" in unmigrated.stderr
    with subprocess.Popen([recap, "serve"], cwd=folder, env=environ, stderr=subprocess.PIPE) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            assert eventually(lambda: is_up(url), 30.0)
            for path in ("/", "/static/js/main.js", "/openapi.json", "/docs/"):
                assert httpx2.get(url + path, trust_env=False).status_code == 200, path
            said = {"session_id": "cats", "user_id": "ada", "message": "My cat is called Miso."}
            assert httpx2.post(f"{url}/api/chat", json=said, trust_env=False).json()["reply"]
        finally:
            server.terminate()
        assert server.wait(30) == 0
    assert (folder / "data/recap.db").exists()
    outside = subprocess.run([python, "-c", "import recap_server, models"], cwd="/", capture_output=True, text=True)
    assert "No module named 'models'" in outside.stderr, "only the command has Recap's modules on its path"


def is_up(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/health/ready", trust_env=False).status_code == 200
    except httpx2.TransportError:
        return False
