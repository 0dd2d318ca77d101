"""Health."""

from __future__ import annotations

from typing import Any

from flask_smorest import Blueprint

from api.context import services
from memory.notice import builtin_notice
from schemas.ops import Live, Ready

blueprint = Blueprint("ops", "ops", description="For whoever operates the service.")


@blueprint.route("/health/live", methods=["GET"])
@blueprint.response(200, Live)
def live() -> dict[str, str]:
    """Whether the process answers"""
    return {"status": "ok"}


@blueprint.route("/health/ready", methods=["GET"])
@blueprint.response(200, Ready)
@blueprint.alt_response(503, schema=Ready, description="Something that is needed is not there; the answer says what.")
def ready() -> tuple[dict[str, Any], int]:
    """Whether requests can be served, and by which models"""
    engine = services()
    checked = engine.check()
    body: dict[str, Any] = {
        "status": "ready" if checked.ready else "unready",
        "database": checked.database,
        "data_dir": checked.data_dir,
        "model": {
            "main": engine.main.name,
            "mini": engine.mini.name,
            "builtin": engine.settings.uses_builtin_model,
        },
        "jobs": checked.jobs,
    }
    notice = builtin_notice(engine.settings)
    if notice:
        body["notice"] = notice
    return body, 200 if checked.ready else 503
