"""`recap models`: whether the configured models answer.  It works beside a running server."""

import sys

import click

from api.current_request import current_engine
from cli import Commands
from memory.llm.model_check import ModelCheck, check_models

models = Commands("models", help="The models that answer, summarise and embed.")


@models.command("check")
def check() -> None:
    """Ask each configured model one small question.  Exits with 1 when one does not work.

    It tells what each server does not take, and whether the model can read prompts of CONTEXT_TOKENS.
    """
    engine = current_engine()
    in_use = engine.model_server.models
    if in_use.notice is not None:
        click.echo(in_use.notice)
    broken = in_use.notice is not None and not in_use.builtin
    for checked in check_models(in_use, engine.settings.context_tokens, engine.embedder):
        click.echo("\n            ".join(_lines(checked)))
        broken |= not checked.works
    sys.exit(int(broken))


def _lines(checked: ModelCheck) -> list[str]:
    state = "works" if checked.works else "FAILS"
    lines = [f"{checked.task:<12}{state}  {checked.seconds:.1f} s  {checked.model} at {checked.address}"]
    if checked.problem is not None:
        lines.append(checked.problem)
    if checked.reply:
        lines.append(f'answered: "{checked.reply}"')
    if checked.window is not None:
        lines.append(f"reads {checked.window} tokens at a time")
    return [*lines, *checked.learned, *(f"Warning: {warning}" for warning in checked.warnings)]
