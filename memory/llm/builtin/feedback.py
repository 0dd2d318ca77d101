"""An instruction changed by a rule: what the person says in their feedback becomes its last line."""

from __future__ import annotations

from memory.llm import FeedbackMaterial
from memory.rendering import one_line


def feedback(material: FeedbackMaterial) -> dict[str, str]:
    """The new text, in the shape a mini model answers."""
    said = one_line(material.feedback)
    lines = filter(None, (material.instruction, said))
    return {"text": "\n".join(lines), "reason": "The person said so.", "quote": said}
