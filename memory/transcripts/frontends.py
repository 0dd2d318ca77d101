"""Texts that agents and frontends write: into a person's messages, and as requests about a conversation.

What they write into a person's messages is not stored.

Agents put the state of their work and standing instructions before the person's words.  Aider also begins each
conversation with an example, and files and rules stand in messages of the person's.  Qwen Code, as other programs made
from Gemini CLI, begins it with the state of the machine, and an answer to that.  Open WebUI puts what it found in files
and on the web before them, and LobeChat after them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

_BLOCK = re.compile(
    r"\s*<(system-reminder|environment_context|environment_details|user_instructions|current_datetime)>"
)
_FILE = "# AGENTS.md instructions"
_SETUP = re.compile(r"This is the [\w -]+\. We are setting up the context for our chat\.")
_SETUP_ANSWER = "Got it. Thanks for the context!"
_FOUND, _FOUND_ENDS = "### Task:\nRespond to the user query using the provided context", "</context>"
_ADDED, _ADDED_ENDS = "<!-- SYSTEM CONTEXT (NOT PART OF USER QUERY) -->", "<!-- END SYSTEM CONTEXT -->"
_EXAMPLE_ENDS = "I switched to a new code base. Please don't consider the above files"
_FILES = (
    *("I am not sharing any files", "I am not sharing the full contents", "Don't try and edit any existing code"),
    *("I have *added these files to the chat*", "Here are summaries of some files", "Here are some READ ONLY files"),
    "I am working with you on code in a git repository",
)
_RULES = re.compile(
    r"\n\n+(?=To suggest changes to a file you MUST|# \*SEARCH/REPLACE block\* Rules|# File editing rules"
    r"|# V4A Diff Format Rules)"
)
TITLE_CHARS = 200  # in which a request for a title says so
_TITLE = re.compile(
    r"\btitl(es?|ing)\b[^.!?]*\b((an?|this|the|our|chatbot) (conversation|chat|thread|session)|(first|user's) message)"
    r"|\b(conversation|chat|thread|user's request)\b[^.!?]*\b(titles?|a name)\b|\btitle generator\b",
    re.IGNORECASE,
)
_BRIEF = re.compile(r"\b(short|concise|brief|pithy|few|words?|title generator)\b", re.IGNORECASE)
AUXILIARY = (  # how the instruction or the last message of other auxiliary requests begins, and what it contains
    ("### Task:", "<chat_history>"),  # of Open WebUI
    ("Available Tools: ", "Your task is to choose and return the correct tool(s)"),
    ("Create a concise, 3-5 word phrase as a header for the following query", ""),
    ("Analyze this conversation and provide:", " User: "),  # of LibreChat
    ("", "predict the three most likely questions that human would ask"),  # of Dify and Flowise
    (
        "<role> Context Extraction Assistant </role>",
        "<messages>",
    ),  # of LangChain, when it summarises an agent's history
    ("Given the following... please reply with a short summary", "words in length"),  # of Continue
    ("Summarize this session for continuation.", "## Goal"),  # of Cline, when it shortens a conversation
    ("Managed memory directory: ", "update durable managed memory"),  # of Qwen Code, for files of its own
    ("Reply with only a description in four words or less", ""),  # of Goose
    ("Summarize in a 10-word Title.", ""),  # of Jan
    ("Analyze *only* the content and structure of your immediately preceding response", ""),  # of Gemini CLI
    ("你是一名擅长会话的助理，你需要将用户的会话总结为", ""),  # of LobeChat and Cherry Studio
    ("Summarize the discussion briefly in 200 words or less to use as a prompt", ""),  # of NextChat
    ("使用四到五个字直接返回这句话的简要主题", ""),
    ("简要总结一下对话内容，用作后续的上下文提示 prompt", ""),
    ("[Write your next reply from the point of view of ", ""),  # of SillyTavern
)


def words_of_person(text: str) -> str:
    """Return a text of a user's message without what an agent or a frontend wrote into it."""
    while block := _BLOCK.match(text):
        _, end, rest = text.partition(f"</{block[1]}>")
        if not end:
            break
        text = rest.lstrip()
    if text.startswith(_FOUND):
        words = text.rpartition(_FOUND_ENDS)[2].replace("<user_query>", "").replace("</user_query>", "")
        text = words.strip() or text
    words, _, added = text.partition(_ADDED)
    text = (words + added.partition(_ADDED_ENDS)[2]).strip() if added else text
    return "" if text.startswith(_FILE) or _SETUP.match(text) else text


def without_agents(raw: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
    """Return the messages with the person's words alone; None for those that an agent wrote, and for its answers."""
    begin = next((place for place, message in enumerate(raw) if _begins(message, "user", _EXAMPLE_ENDS)), None)
    if begin is None:
        return [None if _begins(message, "assistant", _SETUP_ANSWER) else message for message in raw]
    persons: list[Mapping[str, Any] | None] = [None] * (begin + 1)
    for before, message in zip(raw[begin:], raw[begin + 1 :], strict=False):
        is_reply = _begins(message, "assistant", "Ok") and _begins(before, "user", (_EXAMPLE_ENDS, *_FILES))
        is_aiders = is_reply or _begins(message, "user", _FILES)
        content = message.get("content")
        words = _RULES.split(content)[0] if message.get("role") == "user" and isinstance(content, str) else content
        persons.append(None if is_aiders else {**message, "content": words})
    return persons


def is_auxiliary_text(text: str) -> bool:
    """Return whether a frontend's request for a title, tags or the next question begins so."""
    text = " ".join(text.split())
    beginning = text[:TITLE_CHARS]
    if _TITLE.search(beginning) and _BRIEF.search(beginning):
        return True
    return any(text.startswith(begins) and inside in text for begins, inside in AUXILIARY)


def _begins(message: Mapping[str, Any], role: str, words: str | tuple[str, ...]) -> bool:
    content = message.get("content")
    return message.get("role") == role and isinstance(content, str) and content.startswith(words)
