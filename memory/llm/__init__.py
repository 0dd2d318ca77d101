"""Language models behind one interface, `LanguageModel`.  `completions` asks any OpenAI-compatible server; `builtin`
works by rules and needs neither network nor key."""

from memory.llm.model import Call as Call
from memory.llm.model import ChatMessage as ChatMessage
from memory.llm.model import Chunk as Chunk
from memory.llm.model import DigestMaterial as DigestMaterial
from memory.llm.model import Finish as Finish
from memory.llm.model import Interrupted as Interrupted
from memory.llm.model import LanguageModel as LanguageModel
from memory.llm.model import ModelRequest as ModelRequest
from memory.llm.model import Piece as Piece
from memory.llm.model import ReplyMaterial as ReplyMaterial
from memory.llm.model import Tool as Tool
from memory.llm.model import ToolCall as ToolCall
from memory.llm.model import complete as complete
