"""Settings: each from its variable, checked, with a sentence that names the variable when it can't be used."""

import os
import re
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app import build_app, engine_of
from config import ApiKey, FactWeights, FallbackModel, Settings, SettingsError
from config.parsers import When, when
from memory.jobs import IDLE_SECONDS
from models import OwnerRow

# Every variable that takes more than a number or a text: a value, and what that becomes.
GOOD: dict[str, tuple[str, Any]] = {
    "RECAP_DATA_DIR": ("/srv/recap", Path("/srv/recap")),
    "DATABASE_URL": ("postgres://db/recap", "postgresql://db/recap"),  # as a service hands it out
    "HOST": ("[::1]", "::1"),
    "RECAP_API_KEYS": (
        "acme:0123456789abcdef, my.org:keys-may-have:colons=,acme:another-of-acme-1",
        (
            ApiKey("acme", "0123456789abcdef"),
            ApiKey("my.org", "keys-may-have:colons="),
            ApiKey("acme", "another-of-acme-1"),
        ),
    ),
    "RECAP_ALLOW_ANONYMOUS": ("1", True),
    "RATE_LIMIT": ("120 per minute; 10 per second", "120 per minute; 10 per second"),
    "RATE_LIMIT_STORAGE": ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
    "CORS_ORIGINS": (
        "https://app.example.com, http://localhost:3000, app://obsidian.md",
        ("https://app.example.com", "http://localhost:3000", "app://obsidian.md"),
    ),
    "OPENAI_BASE_URL": ("http://localhost:11434/v1", "http://localhost:11434/v1"),
    "ENCRYPTION_KEY": (f"{'QUFB' * 10}QUE=", f"{'QUFB' * 10}QUE="),
    "OPENAI_MODELS": ("gpt-4o, gpt-4o-mini", ("gpt-4o", "gpt-4o-mini")),
    "OPENAI_SUMMARY_BASE_URL": ("http://localhost:8001/v1", "http://localhost:8001/v1"),
    "OPENAI_FALLBACK_MODELS": (
        "gpt-4o-mini, me@home@https://models.example.com/v1",
        (FallbackModel("gpt-4o-mini"), FallbackModel("me@home", "https://models.example.com/v1")),
    ),
    "EMBEDDING_BASE_URL": ("https://api.openai.com/v1", "https://api.openai.com/v1"),
    "SUMMARY_MODE": ("Inline", "inline"),
    "JOBS": ("Worker", "worker"),
    "PROMPT_CACHE_KEY": ("ON", "on"),
    "EMBEDDINGS": ("Off", "off"),
    "SEARCH": ("Whoosh", "whoosh"),
    "SEARCH_LANGUAGE": ("DE", "de"),
    "TIMEZONE": ("Europe/Tallinn", ZoneInfo("Europe/Tallinn")),
    "RANKING": ("words", "words"),
    "FUSION": ("rrf", "rrf"),
    "RECALL": ("Always", "always"),
    "RECALL_SCOPE": ("session", "session"),
    "RERANK": ("model", "model"),
    "FEEDBACK": ("Auto", "auto"),
    "FACT_WEIGHTS": ("importance:1, relevance: 0.5", FactWeights(importance=1.0, relevance=0.5)),
    "PROFILE_MODE": ("every 30 minutes", When("schedule", minutes=30)),
    "OVERVIEW": ("0 5 * * *", When("schedule", cron="0 5 * * *")),
    "CONSOLIDATION": ("background", When("background")),
    "LINKS": ("OFF", "off"),
    "METRICS_KEY": ("prometheus-reads-with-it", "prometheus-reads-with-it"),
    "LOG_LEVEL": ("DEBUG", "debug"),
    "OTEL_EXPORTER_OTLP_ENDPOINT": ("http://127.0.0.1:4318", "http://127.0.0.1:4318"),
    "LOG_FORMAT": ("JSON", "json"),
    "PUBLIC_URL": ("https://recap.example.com/", "https://recap.example.com"),
    "WEBHOOK_NETWORKS": ("10.1.0.0/16, ::1", (ip_network("10.1.0.0/16"), ip_network("::1"))),
    "CONVERSATION_TYPES": ("OFF", "off"),
}

# Values a variable can't take, and what the error says beside its name.
BAD = [
    ("OPENAI_FALLBACK_MODELS", "gpt-4o, llama3.1 at home", "item 2"),
    ("OPENAI_FALLBACK_MODELS", "llama3.1@http:127.0.0.1", "item 1"),
    ("OPENAI_API_KEY_FILE", "/nowhere/key", "/nowhere/key (No such file or directory)"),
    ("PORT", "80000", "65535"),
    ("DATABASE_URL", "mysql://recap:secret@db/recap", "postgresql+psycopg://"),
    ("DATABASE_URL", "postgresql+psycopg0://recap:secret@db/recap", "psycopg0, which is not installed"),
    ("DATABASE_URL", "postgresql+psycopg://recap:se@cret@db/recap", "write an @ within it as %40"),
    ("DATABASE_URL", "postgresql+psycopg://recap:secret@db:5x/recap", "no host and port"),
    ("RATE_LIMIT", "often", "120 per minute"),
    ("RATE_LIMIT_STORAGE", "carrier-pigeon://loft", "memory://"),
    ("CORS_ORIGINS", "https://*.example.com", "never *"),
    ("CORS_ORIGINS", "https://app.example.com/", "without a path"),
    ("ENCRYPTION_KEY", "0123456789abcdef", "Fernet"),
    ("RECAP_API_KEYS", "0123456789abcdef", "pair 1"),
    ("RECAP_API_KEYS", "acme:0123456789abcdef,", "pair 2"),
    ("RECAP_API_KEYS", "a b:0123456789abcdef", "tenant of pair 1"),
    ("RECAP_API_KEYS", "acme:0123456789abcde", "at least 16"),
    ("RECAP_API_KEYS", "acme:0123456789abcdéf", "ASCII"),
    ("RECAP_API_KEYS", "acme:0123456789abcdef,globex:0123456789abcdef", "twice"),
    ("RECAP_ALLOW_ANONYMOUS", "perhaps", "valid boolean"),
    ("MODEL_TIMEOUT", "nan", "finite number"),
    ("SUMMARY_DEBOUNCE", "100000", "86400"),
    ("TAIL_MESSAGES_MIN", "12", "below TAIL_MESSAGES_MAX"),
    ("SEARCH", "postgres", "name it in DATABASE_URL"),
    ("TIMEZONE", "Europe/Atlantis", "there is no time zone called"),
    ("FACT_WEIGHTS", "charm:1", "charm: extra inputs"),
    ("METRICS_KEY", "too-short", "at least 16"),
    ("WEBHOOK_NETWORKS", "10.1.0.1/16", "networks as 10.1.0.0/16"),
    ("PUBLIC_URL", "recap.example.com", "https://recap.example.com"),
    ("PUBLIC_URL", 'https://recap.example.com/"><b', "address of Recap's page"),
    ("HOST", "0.0.0.0:8000", "the port is PORT"),
    ("OPENAI_BASE_URL", "localhost:11434/v1", "begins with http://"),
    ("EMBEDDING_BASE_URL", "127.0.0.1:8080", "begins with http://"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317", "begins with http://"),
    ("OPENAI_BASE_URL", "http://user:pass@host:port/v1", "begins with http://"),
    ("LOG_LEVEL", "loud", "'debug', 'info', 'warning' or 'error'"),
]


def from_env(dotenv: Path | None = None, **environ: str) -> Settings:
    return Settings.from_env(environ, dotenv)


def good(variable: str, default: Any) -> tuple[str, Any]:
    """A value that a variable takes, and what it becomes."""
    value = "another text" if isinstance(default, str) else default + 1 if isinstance(default, int | float) else None
    return GOOD.get(variable, (str(value), value))


def test_every_setting_has_a_variable_parses_and_leaves_the_others_alone():
    assert set(Settings.variables()) >= set(GOOD)
    for variable, name in Settings.variables().items():
        raw, value = good(variable, Settings.model_fields[name].default)
        assert from_env(**{variable: f"  {raw} "}) == Settings().model_copy(update={name: value}), variable
        assert from_env(**{variable: " "}) == Settings(), "empty means not set"
        assert value != Settings.model_fields[name].default, "a value other than the default shows that it was read"
        assert (Settings.model_fields[name].description or "").endswith(".")


@pytest.mark.parametrize(("variable", "raw", "told"), BAD)
def test_what_cannot_be_used_names_its_variable(variable, raw, told):
    with pytest.raises(SettingsError) as caught:
        from_env(**{variable: raw})
    name, _, reason = str(caught.value).partition(" ")
    assert name.rstrip(":") == variable and told in reason
    if variable in ("RECAP_API_KEYS", "ENCRYPTION_KEY"):
        assert not any(part.strip() and part.strip() in reason for part in re.split("[,:]", raw)), "it shows no key"


def test_the_environment_is_stronger_than_the_folders_dotenv(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / ".env"
    file.write_text("# ours\nPORT=9000\nHOST='0.0.0.0'\nexport OPENAI_MODEL=llama3\nEMPTY\nUNKNOWN=x\n")
    monkeypatch.setenv("PORT", "9001")
    for name in ("OPENAI_MODEL", "HOST"):
        monkeypatch.delenv(name, raising=False)
    for settings in (Settings.from_env(), from_env(file, PORT="9001")):
        assert (settings.port, settings.host, settings.openai_model) == (9001, "0.0.0.0", "llama3")
    file.write_text("LOG_LEVEL=loud\n")
    with pytest.raises(SettingsError, match="LOG_LEVEL"):
        Settings.from_env()
    assert from_env(tmp_path / "missing") == Settings()


def test_which_model_is_the_mini_one():
    there, openai = {"OPENAI_BASE_URL": "http://x/v1"}, "https://api.openai.com/v1"
    for environ, mini, builtin in (
        ({"OPENAI_SUMMARY_API_KEY": "k"}, "gpt-4o-mini", True),
        ({"OPENAI_API_KEY": "k", "OPENAI_MODEL": "o9"}, "gpt-4o-mini", False),
        ({**there, "OPENAI_MODEL": "llama3"}, "llama3", False),
        (there, "gpt-4o", False),
        ({**there, "OPENAI_SUMMARY_MODEL": "tiny"}, "tiny", False),
        ({**there, "OPENAI_SUMMARY_BASE_URL": openai}, "gpt-4o-mini", False),
        ({**there, "OPENAI_MODEL": "m", "OPENAI_SUMMARY_BASE_URL": "http://x:80/v2"}, "m", False),
    ):
        settings = from_env(**environ)
        assert (settings.mini_model, settings.uses_builtin_model) == (mini, builtin), environ
    with pytest.raises(SettingsError, match="OPENAI_SUMMARY_MODEL"):
        _ = from_env(OPENAI_API_KEY="k", OPENAI_SUMMARY_BASE_URL="http://127.0.0.1:11434/v1").mini_model


def test_secrets_are_not_shown():
    settings = from_env(
        OPENAI_API_KEY="sk-secret", OPENAI_BASE_URL="http://x/v1", RECAP_API_KEYS="acme:0123456789abcdef"
    )
    shown = repr(settings) + repr(settings.api_keys)
    assert "sk-secret" not in shown and "0123456789abcdef" not in shown
    assert "http://x/v1" in shown


# -- model servers


def test_a_key_goes_only_to_its_own_server():
    for environ, keys in (
        ({"OPENAI_API_KEY": "main"}, ("main", None, None)),
        ({"OPENAI_API_KEY": "main", "OPENAI_SUMMARY_BASE_URL": "http://127.0.0.1:11434/v1"}, ("main", "", None)),
        ({"OPENAI_API_KEY": "main", "EMBEDDING_BASE_URL": "https://api.openai.com.example.com/v1"}, ("main", None, "")),
        ({"OPENAI_API_KEY": "main", "EMBEDDING_BASE_URL": "http://api.openai.com/v1"}, ("main", None, "")),
        ({"OPENAI_API_KEY": "main", "EMBEDDING_BASE_URL": "https://API.openai.com:443/v1/"}, ("main", None, "main")),
        ({"OPENAI_API_KEY": "main", "OPENAI_SUMMARY_API_KEY": "mini"}, ("main", "mini", None)),
        ({"EMBEDDING_API_KEY": "embed"}, ("", None, "embed")),
    ):
        servers = from_env(**environ).servers
        assert tuple(server and server.key for server in (servers.main, servers.mini, servers.embedding)) == keys


def test_a_fallback_model_gets_the_key_of_the_server_that_another_setting_names():
    settings = from_env(
        OPENAI_API_KEY="main",
        OPENAI_SUMMARY_BASE_URL="http://mini/v1",
        OPENAI_SUMMARY_API_KEY="mini",
        OPENAI_SUMMARY_MODEL="tiny",
        OPENAI_FALLBACK_API_KEY="other",
        OPENAI_FALLBACK_MODELS="a, b@https://api.openai.com/v1, c@http://mini:80/v1, d@https://mini/v1, e@http://else/v1",
    )
    found = [settings.servers.of_fallback(model) for model in settings.openai_fallback_models]
    assert [server.key for server in found] == ["main", "main", "mini", "other", "other"]
    shown = repr(settings) + repr(settings.servers) + repr(found)
    assert not any(f"'{key}'" in shown for key in ("main", "mini", "other"))


KEYS = ("OPENAI_API_KEY", "OPENAI_SUMMARY_API_KEY", "EMBEDDING_API_KEY", "OPENAI_FALLBACK_API_KEY")


@pytest.mark.parametrize("variable", KEYS)
def test_a_file_may_hold_a_key(variable, tmp_path):
    named, here, dotenv = tmp_path / "secret", tmp_path / variable, tmp_path / ".env"
    name = Settings.variables()[variable]
    named.write_text(" sk-of-the-file\n")
    assert getattr(from_env(**{f"{variable}_FILE": str(named)}), name) == "sk-of-the-file"
    assert getattr(from_env(**{f"{variable}_FILE": str(named), variable: "sk-set"}), name) == "sk-set"
    here.write_bytes(b"\r\nsk-of-the-folder\r\n")
    assert getattr(from_env(dotenv), name) == "sk-of-the-folder"
    assert getattr(from_env(), name) == "", "only the folder of .env counts"
    dotenv.write_text(f"{variable}_FILE={named}\n")
    assert getattr(from_env(dotenv), name) == "sk-of-the-file"
    dotenv.write_text(f"{variable}=sk-set\n")
    assert getattr(from_env(dotenv), name) == "sk-set"


@pytest.mark.parametrize("content", [b" \n", b"two words", b"sk-1\nsk-2\n", b"\xff\xfe", b"x" * 20_000])
def test_a_file_that_holds_no_key_is_refused_with_its_path_and_without_its_content(content, tmp_path):
    file = tmp_path / "OPENAI_API_KEY"
    file.write_bytes(content)
    for environ in ({}, {"OPENAI_API_KEY_FILE": str(file)}):
        with pytest.raises(SettingsError) as caught:
            from_env(tmp_path / ".env", **environ)
        told = str(caught.value)
        assert told.startswith("OPENAI_API_KEY") and str(file) in told and "remove it" in told
        assert not any(word in told for word in ("sk-1", "two words", "xxx"))


@pytest.mark.parametrize(
    "line",
    [
        "OPENAI_API_KEY=sk-secret-1 OPENAI_MODEL=gpt-4o",
        "export OPENAI_MODEL=x  export EMBEDDING_API_KEY=sk-secret-2",
        "HOST=::1 DATABASE_URL=postgresql://ada:sk-secret-3@db/x",
        "OPENAI_BASE_URL=http://x/v1;OPENAI_MODEL = sk-secret-4",
        "OPENAI_MODEL=x<br>OPENAI_API_KEY_FILE=sk-secret-5",
    ],
)
def test_several_settings_in_one_line_are_refused(line, tmp_path):
    file = tmp_path / ".env"
    file.write_text(f"{line}\n")
    with pytest.raises(SettingsError, match="several settings stand in one line") as caught:
        from_env(file)
    assert "sk-secret" not in str(caught.value)
    file.write_text("\n".join(["SYSTEM_PROMPT=Say PORT=80 when asked.", "OPENAI_MODEL=a=b PATH=/x"]))
    assert from_env(file).system_prompt == "Say PORT=80 when asked."


@pytest.mark.parametrize(
    "written",
    [
        b"\xef\xbb\xbfPORT=9000\r\nOPENAI_MODEL=llama3\r\n",
        b"PORT=9000\rOPENAI_MODEL=llama3\r",
        b" export PORT = '9000' # x\n OPENAI_MODEL=\"llama3\"",
    ],
)
def test_a_file_of_another_editor_is_read(tmp_path, written):
    (tmp_path / ".env").write_bytes(written)
    settings = from_env(tmp_path / ".env")
    assert (settings.port, settings.openai_model) == (9000, "llama3")


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("PORT=9000\n".encode("utf-16"), "not text in UTF-8"),
        ("SYSTEM_PROMPT=Grüß dich\n".encode("latin-1"), "not text in UTF-8"),
        (b"PORT=9000\nOPENAI_API_KEY: sk-secret\n", "Line 2 of "),
        (b'SYSTEM_PROMPT="sk-secret\nPORT=9000\n', "Line 1 of "),
        (None, "Is a directory"),
    ],
)
def test_a_file_that_cannot_be_read_is_said(tmp_path, written, why):
    file = tmp_path / ".env"
    file.mkdir() if written is None else file.write_bytes(written)
    with pytest.raises(SettingsError, match=why) as caught:
        from_env(file)
    assert str(file) in str(caught.value) and "sk-secret" not in str(caught.value)


def test_a_name_that_is_nearly_a_settings_is_said(tmp_path):
    (tmp_path / ".env").write_text(
        "OPENAI_MODLE=gpt-5\nopenai_api_key=sk-secret\nPORTS=1\nOPENAI_API_KEY_FILE=x\nRECAP_PORT=1"
    )
    environ = {"POSTGRES_PASSWORD": "x", "OPENAI_MODELS": "a", "OPENAI_API_BASE": "http://x/v1"}
    assert Settings.unread(environ, tmp_path / ".env") == [
        "OPENAI_API_BASE is no setting, and was not read: is it OPENAI_BASE_URL?",
        "OPENAI_MODLE is no setting, and was not read: is it OPENAI_MODEL?",
        "RECAP_PORT is no setting, and was not read: is it PORT?",
        "openai_api_key is no setting, and was not read: is it OPENAI_API_KEY?",
    ]


# -- when long-term memory is written: the grammar of its settings, and the jobs that follow from it


def test_a_setting_says_when():
    for raw, expected in {
        "off": When("off"),
        "Background": When("background"),
        "every  30 minutes": When("schedule", minutes=30),
        "every 24 hours": When("schedule", minutes=24 * 60),
        "0 4 * * mon": When("schedule", cron="0 4 * * MON"),
    }.items():
        assert when(raw) == expected


@pytest.mark.parametrize(
    "raw",
    [
        *("", "sometimes", "every 0 minutes", "every 525601 minutes", "every 8761 hours", "* * * *", "61 * * * *"),
        "0 0 30 2 *",  # this never comes round
    ],
)
def test_what_says_no_time_is_refused_with_what_does(raw):
    with pytest.raises(ValueError, match="it takes off, manual, background"):
        when(raw)


def test_a_job_waits_for_a_pause_or_for_its_time(bench):
    """Asked for after each of three turns a minute apart, it runs once."""
    began = bench.clock()  # midnight
    due = {"background": 2 * 60 + IDLE_SECONDS, "inline": 0.0, "every 30 minutes": 1800.0, "0 4 * * *": 4 * 3600.0}
    for number, setting in enumerate([*due, "manual", "off"]):
        bench.clock.now = began
        owner_id = bench.owner(setting)
        for _ in range(3):
            with bench.engine.database.write() as tx:
                if when(setting).is_scheduled:
                    owner = tx.get_one(OwnerRow, owner_id)
                    bench.engine.job_queue.schedule(tx, when(setting), "probe", owner)
            bench.clock.tick(60.0)
        jobs = [job["run_at"] for job in bench.jobs(user_id=setting)]
        expected = [(began + timedelta(seconds=due[setting])).isoformat()] if setting in due else []
        assert jobs == expected, (number, setting)


def test_a_folder_of_another_account_is_named_and_not_its_env_file(tmp_path):
    """As with `docker run --user` on a volume that is somebody else's."""
    folder = tmp_path / "volume"
    folder.mkdir()
    (folder / ".env").write_text("PORT=9999")
    folder.chmod(0)
    reader, writer = os.pipe()
    if not (child := os.fork()):
        if os.geteuid() == 0:
            os.setuid(65534)
        try:
            Settings.from_env({}, dotenv=folder / ".env")
        except SettingsError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as told:
        problem = told.read()
    folder.chmod(0o700)
    assert f"The folder {folder} can't be opened by the account that Recap runs as (user " in problem


def test_a_search_index_in_the_files_of_one_node_says_so_on_a_server(tmp_path, caplog):
    nowhere = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/recap", "RECAP_DATA_DIR": str(tmp_path)}
    engine = engine_of(build_app(Settings.from_env({**nowhere, "SEARCH": "whoosh", "JOBS": "worker"}, None)))
    engine.start()
    engine.stop()
    assert "SEARCH=whoosh is for one node" in caplog.text
