"""Thoughts apart from the answer: whatever the pieces, in code, inline, and in whole texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.llm import text_of
from memory.llm.thoughts import ThoughtSplitter, without_thoughts

ANSWERS = {
    "<think>\nhm {x}\n</think>\n\nHello\nworld": "Hello\nworld",
    "<think>\n\n</think>\n\nHi": "Hi",
    "<THINKING>a</THINKING>b": "b",
    "thinking a\nlot\n</think>\n\nAnswer `x`": "Answer `x`",
    "lots.</think>\n\nAnswer": "Answer",
    "<think>cut off here": "",
    "only a thought\n</think>": "",
    "text\n<think>more\nx</think>\nend": "text\n\nend",
    "\n\n<think>a</think>b": "b",
    "```xml\n<think>x</think>\n```\ndone": "```xml\n<think>x</think>\n```\ndone",
    "~~~\n<think>\n~~~\n": "~~~\n<think>\n~~~\n",
    "Use `<think>`, or <think> here and `</think>`\nok": "Use `<think>`, or <think> here and `</think>`\nok",
    "    <think>\nis indented code": "    <think>\nis indented code",
    "Hello <b>bold</b> a < b and </ c": "Hello <b>bold</b> a < b and </ c",
    "[THINK]a\nb[/THINK]c [x]": "c [x]",
    "<seed:think>a</seed:think>b": "b",
    "<reasoning>\na\n</reasoning>\nb": "b",
    "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b": "b",
    "<|channel|>final<|message|>b": "b",
    "◁think▷a◁/think▷b": "b",
    "b<|im_end|>": "b",
    "b</s>\n": "b",
    "b</s>\n<s>[INST] c": "b",
    "<s>10 euro</s>\n8 euro, <S>9</S> \nnow": "<s>10 euro</s>\n8 euro, <S>9</S> \nnow",
    "It costs <s>10 euro</s>": "It costs <s>10 euro</s>",
    "It costs <s>10</s> 8.<|im_end|>\n<|im_start|>user": "It costs <s>10</s> 8.",
    "b\n<end_of_turn>": "b\n",
    "b<|im_end|>\n<|im_start|>user\nc": "b",
    "b<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nc": "b",
    "`<|im_end|>` ends a message.": "`<|im_end|>` ends a message.",
    "The token </s> ends it.": "The token </s> ends it.",
    "```\na<|im_end|>\n```\nb": "```\na<|im_end|>\n```\nb",
    "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>{}": "{}",
    "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final json<|message|>{}": "{}",
    "analysisWe need to greet.\n\nShort.assistantfinalHi": "Hi",
    "analysisPlan = read()\nends in\nassistantfinal\nok": "ok",
    "analysisPlan = read()\nis code": "analysisPlan = read()\nis code",
    "Analysis of it:\nanalysisPlan assistantfinal\nok": "Analysis of it:\nanalysisPlan assistantfinal\nok",
    "[link](x) and [/": "[link](x) and [/",
    "`</think>\nok": "`</think>\nok",
    "a <": "a <",
    "<thi": "<thi",
    "": "",
}
LINES = st.sampled_from(["<think>", "</think>", "<th", "</", "```", "word", " ", "\n", "`", "~~~", "Ü", "    "])


def split(text: str, sizes: list[int], *, implicit: bool = False) -> str:
    """The answer in a text that comes in pieces of these sizes, and the rest at once."""
    splitter, at = ThoughtSplitter(implicit=implicit), 0
    parts = []
    for size in sizes:
        parts += splitter.feed(text[at : at + size])
        at += size
    return text_of((*parts, *splitter.feed(text[at:]), *splitter.end()))


@pytest.mark.parametrize("text", ANSWERS)
def test_thoughts_are_taken_out_of_any_pieces(text):
    for size in [1, 2, 3, 7, 1000]:
        assert split(text, [size] * (len(text) // size + 1)) == ANSWERS[text]


@given(st.lists(LINES).map("".join), st.lists(st.integers(1, 9)), st.booleans())
def test_the_answer_does_not_depend_on_the_pieces(text, sizes, implicit):
    assert split(text, sizes, implicit=implicit) == split(text, [], implicit=implicit)


@given(st.text(alphabet="ab <>/`\n"))
def test_a_text_without_tags_stays_as_it_is(text):
    assert without_thoughts(text) == text


def test_a_model_whose_template_opens_the_thought():
    assert split("so\n</think>\n\nYes.", [1] * 30, implicit=True) == "Yes."
    assert split("No thought.", [1] * 30, implicit=True) == "No thought."
