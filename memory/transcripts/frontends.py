"""Texts that agents and frontends write: into a person's messages, and as requests about a conversation.

What they write into a person's messages is not stored.

Agents put the state of their work and standing instructions before the person's words.  Aider also begins each
conversation with an example, and files and rules stand in messages of the person's.  Qwen Code, as other programs made
from Gemini CLI, begins it with the state of the machine, and an answer to that.  Open WebUI puts what it found in files
and on the web before them, and LobeChat after them.

Frameworks fill the person's words into a prompt of their own, in a message of the person's: retrieved documents, the
tools of an agent that works with text alone, a reminder of the output's form.  Such a prompt begins in a known way, or
ends with a label that the model goes on from (`Answer:`), and has the words after a label (`Question:`).  What they
found for a call that the assistant wrote as text, or found wrong in its answer, is the result of a tool.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

_BLOCK = re.compile(
    r"\s*<(system-reminder|environment_context|environment_details|user_instructions|current_datetime|attached_files)>"
)
_FILE = "# AGENTS.md instructions"
_SETUP = re.compile(r"This is the [\w -]+\. We are setting up the context for our chat\.")
_SETUP_ANSWER = "Got it. Thanks for the context!"
_FOUND, _FOUND_ENDS = "### Task:\nRespond to the user query using the provided context", "</context>"
_ADDED, _ADDED_ENDS = "<!-- SYSTEM CONTEXT (NOT PART OF USER QUERY) -->", "<!-- END SYSTEM CONTEXT -->"
_LABEL = r"[ \t#*]*(?:<[A-Za-z][\w -]{1,60}>|[A-Za-z][\w ,'-]{0,60}:)"  # of what comes after it in a prompt
_PERSONS = (
    r"[ \t#*]*(?:\[\[ ## |<)?(?:(?:current|new|user|follow[ -]?up)[ _])?"
    r"(?:task|question|query|request|input|instruction|message|human|user)(?: ## \]\]|>|:)"
)
_FILLED_IN = re.compile(  # how such a prompt begins
    r"\[\[ ## |(?:Current|New) [Tt]ask:|Observation:[\s\S]*\nNew task:"
    r"|(?:Answer|Use|Using|Given|Based on)\b(?=.*\b(?:question|query)\b).*\b(?:context|documents|information)\b"
)
_GOES_ON = re.compile(_LABEL)
_FIELD = re.compile(
    rf"^{_PERSONS}\s*(\S.*?)(?=\n{_PERSONS}|\n</"
    r"|\n[ \t#*]*(?:context|documents|(?:\w+ )?answer|thought|action|ai|assistant|chatbot|response):"
    rf"|\n[ \t]*\n(?:(?-i:{_LABEL})|\[\[ ## |Respond with |Begin!)|\n(?-i:{_LABEL})\Z|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_CALLED = re.compile(r"^Action:|^Calling tools:|<code>|^```", re.MULTILINE)
_FOUND_WRONG = ("Validation feedback:", "Validation Error found:", "Correct your JSON ONLY RESPONSE")
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
    ("You have been provided with a set of responses from various models", "Responses from models:"),
    ("Your task is to reflect the speaker's likely facial expression", "emoji"),
    ("Create a concise, 3-5 word phrase as a header for the following query", ""),
    ("Analyze this conversation and provide:", " User: "),  # of LibreChat
    ("", "predict the three most likely questions that human would ask"),  # of Dify and Flowise
    (
        "<role> Context Extraction Assistant </role>",
        "<messages>",
    ),  # of LangChain, when it summarises an agent's history
    ("Given ", " to be a standalone question"),  # of LangChain, LlamaIndex and what is made with them, before a search
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
    prompt = text.strip()
    before, _, last_line = prompt.rpartition("\n")
    if _FILLED_IN.match(prompt) or (before and _GOES_ON.fullmatch(last_line)):
        text = next(reversed(_FIELD.findall(prompt)), text).strip()
    return "" if text.startswith(_FILE) or _SETUP.match(text) else text


def without_agents(raw: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
    """Return the messages with the person's words alone; None for those that an agent wrote, and for its answers."""
    begin = next((place for place, message in enumerate(raw) if _begins(message, "user", _EXAMPLE_ENDS)), None)
    if begin is None:
        pairs = zip((None, *raw), raw, strict=False)
        return [
            None if _begins(message, "assistant", _SETUP_ANSWER) else _by_role(before, message)
            for before, message in pairs
        ]
    persons: list[Mapping[str, Any] | None] = [None] * (begin + 1)
    for before, message in zip(raw[begin:], raw[begin + 1 :], strict=False):
        is_reply = _begins(message, "assistant", "Ok") and _begins(before, "user", (_EXAMPLE_ENDS, *_FILES))
        is_aiders = is_reply or _begins(message, "user", _FILES)
        content = message.get("content")
        words = _RULES.split(content)[0] if message.get("role") == "user" and isinstance(content, str) else content
        persons.append(None if is_aiders else {**message, "content": words})
    return persons


def _by_role(before: Mapping[str, Any] | None, message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message; as the result of a tool, if a program tells in it what a call that is text led to."""
    if before is None or before.get("role") != "assistant":
        return message
    is_result = _begins(message, "user", _FOUND_WRONG) or (
        _begins(message, "user", "Observation:") and _CALLED.search(str(before.get("content"))) is not None
    )
    return {**message, "role": "tool"} if is_result else message


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
