"""Templates of prompts, in Jinja2's immutable sandbox.

Templates see their variables and a few harmless filters, nothing else. They print, choose and loop one deep; they
define, call and multiply nothing.

Invariants:
- A template that is accepted renders quickly into a text of bounded size, and reads no secret (test_prompts).
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, meta, nodes, pass_eval_context
from jinja2.filters import do_join
from jinja2.nodes import EvalContext
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError

from memory.errors import InvalidRequest

RENDERED_CHARS_MAX = 100_000

_REFUSED = (
    *(nodes.Macro, nodes.Call, nodes.CallBlock, nodes.Assign, nodes.AssignBlock, nodes.With),
    *(nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends),
    *(nodes.Mul, nodes.Pow, nodes.Mod),  # 'x' * 10 ** 9 takes a gigabyte
)
_FILTERS = ("join", "upper", "lower", "title", "capitalize", "trim", "length", "default", "first", "last", "list")


@pass_eval_context
def _join(context: EvalContext, items: Any, separator: str = "", attribute: Any = None) -> str:
    """Jinja2's `join` within bounds: joining by a long string multiplies too."""
    items, separator = list(items), str(separator)
    if len(items) * len(separator) > RENDERED_CHARS_MAX:
        raise SecurityError("what it joins is too long")
    return str(do_join(context, items, separator, attribute))


_ENV = ImmutableSandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
_ENV.globals.clear()  # no range, lipsum or cycler: loops go over variables
_ENV.filters = {name: _ENV.filters[name] for name in _FILTERS} | {"join": _join}


def render(name: str, text: str, variables: Mapping[str, Any]) -> str:
    """Return the template `text` of the prompt `name`, filled in. Raises InvalidRequest, which says what is wrong."""
    try:
        template, used = _compiled(text)
        if unknown := ", ".join(sorted(used - set(variables))):
            raise InvalidRequest(
                "undefined_in_prompt",
                f"The prompt {name!r} uses {unknown}, which it is not given. "
                f"It knows: {', '.join(variables) or 'no variables'}.",
                param="text",
            )
        rendered = ""
        for piece in template.generate(variables):
            rendered += piece
            if len(rendered) > RENDERED_CHARS_MAX:
                raise bad_prompt(f"The prompt grows beyond {RENDERED_CHARS_MAX:,} characters when it is filled in.")
        return rendered.strip()
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        raise bad_prompt(f"The prompt is not a valid template{where}: {str(error.message).rstrip('.')}.") from error
    except (RecursionError, SyntaxError, MemoryError) as error:  # Python raises all three for deep nesting
        raise bad_prompt("The prompt is nested too deeply.") from error
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise bad_prompt(f"The prompt fails when it is filled in: {error}.") from error


@lru_cache(maxsize=256)
def _compiled(text: str) -> tuple[Template, frozenset[str]]:
    """Return a template and the variables it uses. Raises InvalidRequest for one that could run long or write much."""
    tree = _ENV.parse(text)
    if refused := next(tree.find_all(_REFUSED), None):
        can = "A prompt can print, choose and loop, but not define, call, include or multiply anything"
        raise bad_prompt(f"{can} (line {refused.lineno}).")
    for loop in tree.find_all(nodes.For):
        if loop.find(nodes.For) is not None or not isinstance(loop.iter, nodes.Name):
            raise bad_prompt(
                f"A loop goes over one of the prompt's variables, and not within another (line {loop.lineno})."
            )
    return _ENV.from_string(text), frozenset(meta.find_undeclared_variables(tree))


def bad_prompt(message: str) -> InvalidRequest:
    return InvalidRequest("bad_prompt", message, param="text")
