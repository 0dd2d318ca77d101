"""Find the person's words among what agents and frontends write into their messages, which is not stored.

Agents put the state of their work and standing instructions before the person's words, or beside them in parts of
their own, and note there what was interrupted.  When a conversation grows long, they put a summary of their own in the
place of its beginning.  Aider also begins each conversation with an example, and files and rules stand in messages of
the person's.  Qwen Code, as other programs made from Gemini CLI, begins it with the state of the machine, and an answer
to that.  Open WebUI puts what it found in files and on the web before them, and LobeChat after them.

Frameworks fill the person's words into a prompt of their own, in a message of the person's: retrieved documents, the
tools of an agent that works with text alone, a reminder of the output's form.  Such a prompt begins in a known way, or
ends with a label that the model goes on from (`Answer:`), and has the words after a label (`Question:`).  What they
found for a call that the assistant wrote as text, or found wrong in its answer, is the result of a tool.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

_BLOCK = re.compile(
    r"\s*<(system|system-reminder|environment_context|environment_details|user_instructions|current_datetime"
    r"|attached_files|turn_aborted|user_shell_command|subagent_notification|skill)>"
)
_COMPOUND = re.compile(r"\s*<(?!user_(?:message|query|input)\b)([a-z]+(?:[_-][a-z]+)+)(?: [^<>]*)?>")
_WORDS = re.compile(r"\s*<(user_(?:message|query|input))\b[^<>]*>(.*?)</\1>\s*", re.DOTALL)
_MATERIAL = ("# AGENTS.md instructions", "The posts are given below:\n\n---- Posts Start ----")
_CONTEXT = (  # how a message of its own begins that a program puts before the words, in whatever role
    "# Contextual information to assist with the following user request.",
    "Use my personal notes and our past conversations to inform your response.",
    "Use this up-to-date information from the internet to inform your response.",
    "Your memory system retrieved the following memories about me based on our previous conversations.",
)
_SETUP = re.compile(r"This is the [\w -]+\. We are setting up the context for our chat\.")
_NOTE = re.compile(r"\s*(\[Request interrupted by user[^\]]*\]|Continue from where you left off\.)\s*")
_ANSWERS = (
    *("Got it. Thanks for the context!", "Got it. Thanks for the additional context!"),
    "No response requested.",
)
_SUMMARY = (  # how a message begins that stands in the place of what was said before
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
    "The conversation history before this point was compacted",
    "The conversation history has been summarized",
    *("<state_snapshot>", "<scratchpad>", "<summary>\n"),
)
_SUMMARY_LABEL = re.compile(  # of one that the messages begin with; as the only one it is a person's
    r"[\[<(*# ]{0,4}(?:previous |earlier )?(?:conversation|chat|call)[ _](?:history[ _])?summary(?: so far)?"
    r"[\])>*]{0,3}\s*[:\n]",
    re.IGNORECASE,
)
_ADDED = (  # how the texts begin and end that frontends put beside the words, from files and the web
    ("### Task:\nRespond to the user query using the provided context", "</context>"),
    ("<!-- SYSTEM CONTEXT (NOT PART OF USER QUERY) -->", "<!-- END SYSTEM CONTEXT -->"),
    ("<knowledge_base_qa_info>", "</knowledge_base_qa_info>"),
    ('Attached document(s):\n```md# "', "\n\n```\n"),
    ("", "\n---\n\n[User query]:\n\n"),
)
_LABEL = r"[ \t#*]*(?:<[A-Za-z][\w -]{1,60}>|[A-Za-z][\w ,'-]{0,60}:)"  # of what comes after it in a prompt
_PERSONS = (
    r"[ \t#*]*(?:\[\[ ## |<)?(?:(?:current|new|user|my|follow[ -]?up)[ _])?"
    r"(?:task|question|query|request|input|instruction|message|human|user)(?: ## \]\]|>|(?: is)?:)"
)
_FILLED_IN = re.compile(  # how such a prompt begins
    r"\[\[ ## |(?:Current|New) [Tt]ask:|Observation:[\s\S]*\nNew task:"
    r"|(?:Please answer|Answer|Use|Using|Given|Based on)\b"
    r"(?=.*\b(?:question|query)\b).*\b(?:context|documents|information|reference materials)\b"
)
_GOES_ON = re.compile(_LABEL)
_FIELD = re.compile(
    rf"^{_PERSONS}\s*+(?!(?-i:{_LABEL})[ \t]*$)(\S.*?)(?=\n{_PERSONS}|\n</"
    r"|\n[ \t#*]*(?:context|documents|(?:\w+ )?answer|thought|action|ai|assistant|chatbot|response):"
    rf"|\n[ \t]*\n(?:(?-i:{_LABEL})|\[\[ ## |Begin!)|\n(?-i:{_LABEL})\Z|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_CALLED = re.compile(r"^Action:|^Calling tools:|<code>|^```", re.MULTILINE)
_FOUND_WRONG = re.compile(
    r"Validation (?:feedback|Error found):|Correct your JSON ONLY RESPONSE|[0-9]{1,3} validation errors?:\n```"
)
_REMINDER = re.compile(r"(?:Return|Respond)\b.*\b(?:output fields|order of fields|JSON_SCHEMA)\b")
_EXAMPLE_ENDS = "I switched to a new code base. Please don't consider the above files"
_FILES = (
    *("I am not sharing any files", "I am not sharing the full contents", "Don't try and edit any existing code"),
    *("I have *added these files to the chat*", "Here are summaries of some files", "Here are some READ ONLY files"),
    "I am working with you on code in a git repository",
)
_RULES = re.compile(  # a run of line ends is read from its first alone, or a long one costs the square of its length
    r"(?<!\n)\n\n++(?=To suggest changes to a file you MUST|# \*SEARCH/REPLACE block\* Rules|# File editing rules"
    r"|# V4A Diff Format Rules)"
)
_SPEAKER = re.compile(r"\s*(<@!?[0-9]{1,20}>|[^\W\d_][^\n:<>]{0,39}): *(?=\S)")  # whose name stands before the words


def words_of_person(text: str, *, is_one_of_several: bool = False) -> str:
    """Return a text of a user's message without what an agent or a frontend wrote into it.

    is_one_of_several: the message has other texts, too, as an agent adds them.
    """
    for begins, ends in _ADDED:
        words, _, added = text.partition(begins) if begins else ("", "", text)
        _, end, rest = added.rpartition(ends)
        if end:
            text = (words + rest).strip() or text
    at = 0
    while block := _BLOCK.match(text, at) or (is_one_of_several and _COMPOUND.match(text, at)):
        close = f"</{block[1]}>"
        found = text.find(close, block.end())
        if found < 0:
            break
        at = found + len(close)
    text = text[at:].lstrip() if at else text
    if wrapped := _WORDS.fullmatch(text):
        text = wrapped[2].strip()
    prompt, _, end = text.strip().rpartition("\n\n")
    if prompt and _REMINDER.match(end):
        text = prompt
    prompt = text.strip()
    before, _, last_line = prompt.rpartition("\n")
    if _FILLED_IN.match(prompt) or (before and _GOES_ON.fullmatch(last_line)):
        text = next(reversed(_FIELD.findall(prompt)), text).strip()
    return "" if text.startswith((*_MATERIAL, *_SUMMARY)) or _SETUP.match(text) or _NOTE.fullmatch(text) else text


def split_speaker(text: str) -> tuple[str, str]:
    """Return the name that a program put before the words of a message, "" for none, and these words."""
    speaker = _SPEAKER.match(text)
    return (speaker[1], text[speaker.end() :]) if speaker else ("", text)


def find_summary(raw: Sequence[Mapping[str, Any]]) -> int:
    """Return the place of the last message in which a program sums up those before it; -1 if there is none."""
    places = range(len(raw) - 1, -1, -1)
    summary = next((place for place in places if _begins(raw[place], "user", _SUMMARY)), -1)
    first = next((place for place, message in enumerate(raw) if message.get("role") in ("user", "assistant")), len(raw))
    return first if summary < first < len(raw) - 1 and _is_labelled(raw[first]) else summary


def _is_labelled(message: Mapping[str, Any]) -> bool:
    return any(map(_SUMMARY_LABEL.match, texts_in(message.get("content"))))


def without_agents(raw: Sequence[Mapping[str, Any]], summary: int) -> list[Mapping[str, Any] | None]:
    """Return the messages with the person's words alone; None for those that an agent wrote, and for its answers.

    None also for those before the place of a `summary` (see `find_summary`): the program leaves them out, or repeats
    them from it.
    """
    begin = next((place for place, message in enumerate(raw) if _begins(message, "user", _EXAMPLE_ENDS)), None)
    if begin is not None:
        return [None] * (begin + 1) + list(map(_without_aider, raw[begin:], raw[begin + 1 :]))
    persons: list[Mapping[str, Any] | None] = []
    for place, message in enumerate(raw):
        is_agents = (
            place < summary
            or _begins(message, "assistant", _ANSWERS)
            or _begins(message, message.get("role"), _CONTEXT)
            or (place == summary and _is_labelled(message))
        )
        persons.append(None if is_agents else _by_role(raw[place - 1] if place else None, message))
    return persons


def _without_aider(before: Mapping[str, Any], message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a message without Aider's rules; None for its files, and for the answer to what it wrote `before`."""
    is_reply = _begins(message, "assistant", "Ok") and _begins(before, "user", (_EXAMPLE_ENDS, *_FILES))
    if is_reply or _begins(message, "user", _FILES):
        return None
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, str):
        return message
    return {**message, "content": _RULES.split(content)[0]}


def _by_role(before: Mapping[str, Any] | None, message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message; as the result of a tool, if a program tells in it what a call that is text led to.

    A block of code that ends the assistant's words is such a call, if a system message follows.
    """
    if before is None or before.get("role") != "assistant" or message.get("role") not in ("user", "system"):
        return message
    text = "\n".join(texts_in(message.get("content")))
    if _FILLED_IN.match(text):
        return message
    call = "\n".join(texts_in(before.get("content")))
    is_result = (
        (message.get("role") == "user" and _FOUND_WRONG.match(text) is not None)
        or (_begins(message, "user", "Observation:") and _CALLED.search(call) is not None)
        or (message.get("role") == "system" and call.rstrip().endswith("```"))
    )
    return {**message, "role": "tool"} if is_result else message


def texts_in(content: Any) -> list[str]:
    """Return the texts of a message's content, which is one, or a list of parts."""
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
    return [text for text in texts if isinstance(text, str)]


def _begins(message: Mapping[str, Any], role: Any, words: str | tuple[str, ...]) -> bool:
    return message.get("role") == role and any(text.startswith(words) for text in texts_in(message.get("content")))
