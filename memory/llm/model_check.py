"""Ask each configured model one small question, and tell what works and what was learned of its server."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memory.errors import ModelError, RecapError
from memory.json_values import dict_in, dicts_in, list_in, object_in
from memory.llm import ChatMessage, ModelRequest, complete
from memory.llm.registry import ModelRegistry
from memory.quoting import one_line
from search_index import Embedder, EmbeddingUnavailable

if TYPE_CHECKING:
    from memory.llm.openai_model import OpenAIModel

QUESTION = "Answer with one short sentence: are you there?"
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
REPLY_CHARS = 300  # that are shown of an answer
LOOKUP_SECONDS = 10.0
OLLAMA_TOKENS = 4096  # Ollama's window on a computer with little video memory, whatever the model could read
ROOM = 1.25  # of a window, for the answer beside the prompt
PROSE = "it wrote no JSON. Such an answer becomes the summary as it is, and gives no facts. Choose another mini model."
WITHOUT_FIELD = "its JSON lacks the field it was asked for, and such a summary is refused. Choose another mini model."
_WINDOWS = (
    "max_model_len",  # vLLM
    "loaded_context_length",  # LM Studio
    "context_length",  # OpenRouter, Together
    "context_window",  # Groq
    "max_context_length",  # Mistral, LM Studio
    "max_input_tokens",  # Anthropic
    "n_ctx",  # llama.cpp, in `meta`
)
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.M)


@dataclass(frozen=True)
class ModelCheck:
    """Result of asking a model. task: `main`, `mini`, `embeddings` or `fallback`. error: why it does not work.

    window: tokens that it can read at a time, None where its server does not say. learned: what the server refuses.
    warnings: what to change.
    """

    task: str
    model: str
    address: str
    seconds: float
    reply: str = ""
    error: RecapError | None = None
    window: int | None = None
    learned: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def works(self) -> bool:
        return self.error is None

    @property
    def problem(self) -> str | None:
        return self.error.message if self.error is not None else None


def check_models(models: ModelRegistry, context_tokens: int, embedder: Embedder | None = None) -> Iterator[ModelCheck]:
    """Yield a check of each model at a server, the main model first. Nothing is stored.

    context_tokens: the setting. embedder: what makes embeddings, if it is to be checked.
    """
    from memory.llm.openai_model import OpenAIModel  # which takes long to import

    tasks = [("main", models.single_main), ("mini", models.single_mini)]
    for task, model in [*tasks, *(("fallback", model) for model in models.fallbacks)]:
        if isinstance(model, OpenAIModel):
            yield _check(task, model, context_tokens)
    if embedder is not None and not embedder.instant and models.embedding_provider is not None:
        yield _check_embedder(embedder, models.embedding_provider.address)


def _check(task: str, model: "OpenAIModel", context_tokens: int) -> ModelCheck:
    json_mode = task == "mini"
    system = f"Answer with one JSON object and nothing else, as {json.dumps({'answer': 'yes'})}." if json_mode else ""
    messages = ChatMessage("system", system or "Be brief."), ChatMessage("user", QUESTION)
    request = ModelRequest(messages, SCHEMA if json_mode else None, stream=not json_mode)
    place = task, model.name, model.provider.address
    began = time.monotonic()
    try:
        text, _ = complete(model, request)
    except ModelError as error:
        return ModelCheck(*place, time.monotonic() - began, error=error, learned=_learned(model, json_mode=False))
    seconds = time.monotonic() - began
    window, is_ollama = _window(model)
    faults = _json_warnings(text) if json_mode else ()
    learned = _learned(model, json_mode=json_mode and PROSE not in faults)
    warnings = (*faults, *_warnings(window, context_tokens, is_ollama=is_ollama))
    return ModelCheck(*place, seconds, one_line(text)[:REPLY_CHARS], window=window, learned=learned, warnings=warnings)


def _check_embedder(embedder: Embedder, address: str) -> ModelCheck:
    name = embedder.name.partition(":")[2]
    began = time.monotonic()
    try:
        vectors = embedder.embed([QUESTION])
    except EmbeddingUnavailable as error:
        cause = error.__context__  # which has the server's own words
        failed = cause if isinstance(cause, ModelError) else RecapError("embeddings_unavailable", str(error))
        return ModelCheck("embeddings", name, address, time.monotonic() - began, error=failed)
    reply = f"{vectors.shape[1]} numbers a text"
    return ModelCheck("embeddings", name, address, time.monotonic() - began, reply)


def _learned(model: "OpenAIModel", *, json_mode: bool) -> tuple[str, ...]:
    form = model.form
    learned = []
    if form.without:
        learned.append(f"does not take {', '.join(sorted(form.without))}")
    if form.limit_name is not None:
        learned.append(f"limits answers by {form.limit_name}")
    if form.roles != "any":
        learned.append("takes no system message" if form.roles == "no system" else "takes one system message, first")
    if form.plain_messages:
        learned.append("takes no additional fields of messages")
    if json_mode:
        modes = {"schema": "JSON by schema", "object": "JSON without a schema", "text": "JSON by instruction alone"}
        learned.append(modes[form.json_mode])
    return tuple(learned)


def _json_warnings(text: str) -> tuple[str, ...]:
    """Return the faults of the mini model's answer to SCHEMA."""
    answer = object_in(text[text.find("{") : text.rfind("}") + 1])
    if answer is None:
        return (PROSE,)
    return () if answer.get("answer") else (WITHOUT_FIELD,)


def _warnings(window: int | None, context_tokens: int, *, is_ollama: bool) -> tuple[str, ...]:
    """Return the advice about a window that prompts do not fit."""
    if window is None or window >= context_tokens:
        return ()
    larger = int(context_tokens * ROOM)
    at_server = f"Start Ollama with OLLAMA_CONTEXT_LENGTH={larger}" if is_ollama else "Give it a larger window there"
    return (
        f"it reads {window} tokens at a time, and CONTEXT_TOKENS is {context_tokens}: the beginning of longer prompts "
        f"is lost, or they are refused. {at_server}, or set CONTEXT_TOKENS={int(window / ROOM)} here.",
    )


# -- the window, as servers tell it


def _window(model: "OpenAIModel") -> tuple[int | None, bool]:
    """Return the tokens that the model can read, None if its server does not say; and whether that is Ollama."""
    root, version, _ = model.provider.address.rstrip("/").rpartition("/v1")
    window = _listed(model, "/models")
    if window or not version:  # the servers below have it in their addresses
        return window, False
    if window := _of_ollama(model, root):
        return window, True
    return _listed(model, f"{root}/api/v0/models"), False  # LM Studio's own protocol


def _listed(model: "OpenAIModel", path: str) -> int | None:
    """Return the window in the server's list of models.  The only one listed answers to every name, as at llama.cpp."""
    listed = _fetched(model, path)
    entries = list(map(dict_in, list_in(listed) or list_in(dict_in(listed).get("data"))))
    for entry in entries:
        if len(entries) == 1 or str(entry.get("id")).removeprefix("models/") == model.name:
            values = {**dict_in(entry.get("meta")), **entry}
            return next(filter(None, (_count(values.get(name)) for name in _WINDOWS)), None)
    return None


def _of_ollama(model: "OpenAIModel", root: str) -> int | None:
    """Return the window of a model that Ollama runs: as it is loaded, as the model sets it, or Ollama's default."""
    shown = dict_in(_fetched(model, f"{root}/api/show", {"model": model.name}))
    info = dict_in(shown.get("model_info"))
    if not info:
        return None
    loaded = dict_in(_fetched(model, f"{root}/api/ps"))
    for entry in dicts_in(loaded.get("models")):
        names = {entry.get("name"), entry.get("model")}
        if {model.name, f"{model.name}:latest"} & names and (window := _count(entry.get("context_length"))):
            return window
    if num_ctx := _NUM_CTX.search(str(shown.get("parameters"))):
        return int(num_ctx[1])
    possible = next((_count(value) for name, value in info.items() if name.endswith(".context_length")), None)
    return min(possible or OLLAMA_TOKENS, OLLAMA_TOKENS)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _fetched(model: "OpenAIModel", path: str, body: Mapping[str, Any] | None = None) -> Any:
    """Return JSON of the server; None if it has none there."""
    try:
        return json.loads(model.provider.get(path, body, seconds=LOOKUP_SECONDS))
    except (ModelError, ValueError, RecursionError):
        return None
