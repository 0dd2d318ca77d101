"""Language models behind one interface, `LanguageModel`.  `client` calls any OpenAI-compatible server; `builtin` works
by rules and needs neither network nor key."""

from memory.llm.model import (
    Call,
    ChatMessage,
    Chunk,
    DigestMaterial,
    Finish,
    Interrupted,
    LanguageModel,
    ModelRequest,
    Piece,
    ReplyMaterial,
    Tool,
    ToolCall,
    complete,
)

__all__ = [
    "Call",
    "ChatMessage",
    "Chunk",
    "DigestMaterial",
    "Finish",
    "Interrupted",
    "LanguageModel",
    "ModelRequest",
    "Piece",
    "ReplyMaterial",
    "Tool",
    "ToolCall",
    "complete",
]
