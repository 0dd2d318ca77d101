"""Recognise auxiliary requests, which a program makes for itself: for a title, for tags, for the next question.

Such a request is answered without memory, and nothing of it is stored.  It asks briefly for a title of the
conversation, has another known form, gives instructions after the assistant's last words, or is a single message: one
with a conversation that the instructions have summed up, or one that quotes the last exchange of the session or, where
it names none, of one of the person's latest.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from memory.access.owners import find_session
from memory.transcripts.matching import QUOTED_MIN, active_keys, latest_sessions, opening
from memory.transcripts.persons_words import texts_in
from memory.transcripts.reconcile import MessageKey
from memory.transcripts.transcript import INSTRUCTING, TranscriptRequest, text_of
from models import Transaction
from models.owners import Caller

TITLE_CHARS = 200  # at the beginning or the end, in which a request for a title says so
_TITLE = re.compile(  # no question: people ask about titles so
    r"(?:\btitl(es?|ing)\b[^.!?;]*\b"
    r"((this|the|our|chatbot) (\w+ )?(conversation|chat|thread|session)|the first message|user's (\w+ )?message)"
    r"|\b(conversations?|chats?|thread|user's request)\b[^.!?;]*\b(titles?|a name)\b|\btitle generator\b"
    r"|(对话|会话)[^。！？]*标题)(?![^.:!?。！？]*[?？])",
    re.IGNORECASE,
)
_BRIEF = re.compile(r"\b(short|concise|brief|pithy|few|words?|characters|title generator)\b|字", re.IGNORECASE)
_QUOTED = (  # how a conversation is written down
    re.compile(r"\b(user|human): |<(user|human)>", re.IGNORECASE),
    re.compile(r"\b(assistant|ai): |<(assistant|ai)>", re.IGNORECASE),
)
_AS_CODE = re.compile(r"\[ ?\{ ?['\"]role['\"]: .*\} ?\]")  # a conversation, as Python or JSON writes it
SUMMARY_CHARS = 300  # in which other requests say so; one for a summary has at least so many
_SUMMARIZE = (
    re.compile(  # asks for it: a person tells what one says, or recaps
        r"(?<!\blet me )\bsummari[sz](?:e|es|ing|ation|er)\b"
        r"|\b(?:answer|create|generate|give|make|output|prepare|produce|provide|reply|respond|return|update|write)\b"
        r"[^.!?]{0,80}\bsummar(?:y|ies)\b",
        re.IGNORECASE,
    ),
    re.compile(r"\b(conversations?|session|chat|another LLM)\b", re.IGNORECASE),
    re.compile(
        r"\b(compact(ed|ion)|checkpoint|hand-?off|so far|partial|context summari[sz]ation|internal chat history"
        r"|continuing|chat_history)\b",
        re.IGNORECASE,
    ),
)
_STAND_ALONE = (  # before a search
    re.compile(r"\b(rephrase|reformulate|formulate|rewrite|condense)\b", re.IGNORECASE),
    re.compile(r"\b(chat history|conversation|follow[ -]?up)\b", re.IGNORECASE),
    re.compile(r"\bstandalone (search )?(question|quer(y|ies))(?![^.:!?]*[?])", re.IGNORECASE),
)
_NEXT_WORDS = re.compile(  # a person says "I"
    r"(?:please )?(?:suggest|predict|propose|generate)\b[^.!?]{0,60}"
    r"\b(?:user|human) (?:could|would|might|may|can|will)\b[^.!?]{0,20}\b(?:say|ask)\b",
    re.IGNORECASE,
)
QUOTED_LATEST = 8  # stored messages among which the last exchange is looked for
_LABEL = (  # before a quoted message: its role, a tag, or a field of JSON; a person writes "You said:"
    r"(?:\b(?:user|human|person|customer|assistant|agent|ai|bot|chatbot|model|用户|使用者|助手|助理)\b"
    r"[\s*\])]{0,4}[:：][\s*]{0,4}[\"“]?"
    r"|<[^<>]{1,80}>\s?|\"content\": ?\")"
)
_LABELS = re.compile(_LABEL, re.IGNORECASE)
_ENDS_WITH_LABEL = re.compile(_LABEL + r"\Z", re.IGNORECASE)
_LABEL_CHARS_MAX = 90  # of the longest label, a tag
AUXILIARY = (  # how the instruction or the last message of other auxiliary requests begins, and what it contains
    ("### Task:", "<chat_history>"),  # of Open WebUI
    ("Available Tools: ", "Your task is to choose and return the correct tool(s)"),
    ("You have been provided with a set of responses from various models", "Responses from models:"),
    ("Your task is to reflect the speaker's likely facial expression", "emoji"),
    ("Create a concise, 3-5 word phrase as a header for the following query", ""),
    ("Analyze this conversation and provide:", " User: "),  # of LibreChat
    ("# Current Chat: Human: ", ""),  # its own memory
    ("You write the one-line header above a group of tool calls", ""),
    ("Hold on, before you continue I need you to write me a checkpoint", ""),  # when it shortens a conversation
    ("Hold on again, update your checkpoint.", ""),
    ("", "predict the three most likely questions that human would ask"),  # of Dify and Flowise
    ("<role> Context Extraction Assistant </role>", "<messages>"),  # of LangChain, for an agent's history
    ("Given the following... please reply with a short summary", "words in length"),  # of Continue
    ("Summarize this session for continuation.", "## Goal"),  # of Cline, when it shortens a conversation
    ("CRITICAL: Respond with TEXT ONLY.", "create a detailed summary of the conversation"),  # of Claude Code, then
    ("Summarize this portion of a Claude Code session transcript.", ""),
    ("Analyze this Claude Code session and extract structured facets.", ""),
    ("You are a security monitor for autonomous AI coding agents.", ""),
    ("Managed memory directory: ", "update durable managed memory"),  # of Qwen Code, for files of its own
    ("You are an expert software engineer that generates", "commit message"),  # of Aider
    ("Reply with only a description in four words or less", ""),  # of Goose
    ("Summarize in a 10-word Title.", ""),  # of Jan
    ("Analyze *only* the content and structure of your immediately preceding response", ""),  # of Gemini CLI
    ("Summarize the discussion briefly in 200 words or less to use as a prompt", ""),  # of NextChat
    ("使用四到五个字直接返回这句话的简要主题", ""),
    ("简要总结一下对话内容，用作后续的上下文提示 prompt", ""),
    ("[Write your next reply from the point of view of ", ""),  # of SillyTavern
    ("Analyze the conversation and call ", " relevance and generate "),  # of big-AGI, for a diagram or a page
    ("You are an expert AI text synthesizer, your task is to analyze the following inputs", ""),  # several answers
    ("You are a memory ", " for a personalized AI assistant."),  # of AnythingLLM
    ("Provides conversations for observation.", ""),  # which the two agents of its memory tell each other
    ("Provides candidate observations for reflection.", ""),
    ("You are extracting the key points from a long document that was split into sections.", ""),
    ("You are a professional translator. Translate the input text to", "- Preserve technical terms"),  # of LobeChat
    ("你是一名精通全世界语言的语言专家", ""),
    ("You are an emoji expert who selects the most appropriate emoji", ""),
    ("You are an emoji selector. You will receive a chat message.", ""),  # of Mattermost
    ("你是一名擅长", "输入: {文本作为JSON引用字符串} [locale]"),
    ("You are a conversation supervisor for a group chat with multiple AI agents.", ""),
    ("You are a translation expert. Your only task is to translate text enclosed with", ""),  # of Cherry Studio
    ("Your task is to precisely identify the language used in the user's input text", ""),
    ("You are Khoj, an ", ""),  # what is no chat begins with "an extremely smart" or "an advanced"
    ("As a professional analyst, your job is to extract all pertinent information from documents", ""),
    ("You are a Personal Information Organizer, specialized in accurately storing facts", ""),  # of mem0
    ("You are a smart memory manager which controls the memory of a system.", ""),
    ("You maintain a user's long-term personal memory list", ""),  # of Copilot in Obsidian
    ("Summarize the following content, preserving: - Key concepts and main ideas", ""),
)


def bypasses_memory(tx: Transaction, caller: Caller, session_id: str | None, client: TranscriptRequest) -> bool:
    """Return whether a request uses no memory: it is auxiliary, or has nothing that may be stored."""
    conversation = client.conversation
    messages = conversation.messages
    if client.bypass or not messages:
        return True
    if messages[-1].key.role == "assistant" and any(raw.get("role") in INSTRUCTING for raw in conversation.after):
        return True
    spoken = (raw for raw in reversed(conversation.raw) if raw.get("role") != "tool" and not raw.get("tool_calls"))
    last = next(spoken, conversation.raw[-1])  # a program works on its own request with tools, too
    texts = [text_of(message) for message in conversation.instructions[:1]]
    texts += texts_in(last.get("content"))  # an agent adds its request to a message of the person's
    if _asks_for_title(client.parameters) or any(map(is_auxiliary_text, texts)):
        return True
    if len(messages) != 1 or messages[0].key.role != "user":
        return False
    question = messages[0].key.words
    instruction = " ".join("".join(map(text_of, conversation.instructions[:1])).split())[:SUMMARY_CHARS]
    asks_for_summary = all(words.search(instruction) for words in _SUMMARIZE[:2])
    is_to_be_summed_up = asks_for_summary and all(label.search(question) for label in _QUOTED)
    if is_to_be_summed_up or len(_LABELS.findall(question)) < 2:  # a question's and its answer's
        return is_to_be_summed_up
    if session_id is not None:
        row = find_session(tx, caller, session_id)
        rows = [row] if row is not None else []
    else:
        rows = list(tx.scalars(latest_sessions(caller)).unique()) if caller.owner is not None else []
    return any(_is_quoted(list(active_keys(tx, row, QUOTED_LATEST).values()), question) for row in rows)


def _is_quoted(line: Sequence[MessageKey], quotation: str) -> bool:
    """Return whether a message has the last question and its answer, each after a label."""
    answered = max((place for place, key in enumerate(line) if key.role == "assistant"), default=0)
    question = next((key.text for key in reversed(line[:answered]) if key.role == "user"), "")
    if not question or len(" ".join(line[answered].text.split())) < QUOTED_MIN:
        return False
    for text in (line[answered].text, question):
        quotation, found, _ = quotation.rpartition(opening(text))
        if not found or not _ENDS_WITH_LABEL.search(quotation[-_LABEL_CHARS_MAX:]):
            return False
    return True


def _asks_for_title(parameters: Mapping[str, Any]) -> bool:
    """Return whether the answer is JSON with nothing but a title."""
    schema: Any = parameters
    for name in ("response_format", "json_schema", "schema", "properties"):
        schema = schema.get(name) if isinstance(schema, Mapping) else None
    return isinstance(schema, Mapping) and set(schema) == {"title"}


def is_auxiliary_text(text: str) -> bool:
    """Return whether this is a frontend's request for a title, tags, a summary or the next question."""
    text = " ".join(text.split())
    quoted = _QUOTED[0].search(text)
    places = [text[:TITLE_CHARS]]
    if quoted and _QUOTED[1].search(text, quoted.end()):  # the request may stand after the conversation
        places.append(text[-TITLE_CHARS:])
    if _AS_CODE.fullmatch(text) or _NEXT_WORDS.match(text):
        return True
    if any(_TITLE.search(place) and _BRIEF.search(place) for place in places):
        return True
    beginning = text[:SUMMARY_CHARS]
    kinds = (_SUMMARIZE, _STAND_ALONE) if len(text) >= SUMMARY_CHARS else (_STAND_ALONE,)
    if any(all(words.search(beginning) for words in kind) for kind in kinds):
        return True
    return any(text.startswith(begins) and inside in text for begins, inside in AUXILIARY)
