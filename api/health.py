"""Health and metrics."""

from typing import Any

from flask import Response, current_app
from flask_smorest import Blueprint

from api.current_request import current_engine
from api.limits import RATE_LIMITER, RateLimiter
from memory.ops.metrics import CONTENT_TYPE
from schemas.health import Live, Ready

blueprint = Blueprint("ops", "ops", description="For the server's operator.")


@blueprint.get("/health/live")
@blueprint.doc(operationId="live")
@blueprint.response(200, Live)
def live() -> dict[str, str]:
    """Check that the process answers"""
    return {"status": "ok"}


@blueprint.get("/health/ready")
@blueprint.doc(operationId="ready")
@blueprint.response(200, Ready)
@blueprint.alt_response(
    503, schema=Ready, description="Something that Recap needs is missing; the answer says what to do."
)
def ready() -> tuple[dict[str, Any], int]:
    """Check that requests can be served, and by which models"""
    engine = current_engine()
    models = engine.model_server.models
    report = engine.health.check()
    limits: RateLimiter = current_app.extensions[RATE_LIMITER]
    body = {
        "status": "ready" if report.ready else "unready",
        **vars(report),
        "model": {"main": models.main.name, "mini": models.mini.name, "builtin": models.builtin},
        "notice": models.notice,
        "recall": engine.settings.recall,
        "summary_prompt": engine.settings.summary_prompt,
        "rate_limits": limits.storage_down(),
    }
    return {name: value for name, value in body.items() if value is not None}, 200 if report.ready else 503


def metrics() -> Response:
    """Return the metrics of all worker processes. They are not in the document: Prometheus has its own format."""
    return Response(current_engine().health.metrics_text(current_app.config["API_VERSION"]), content_type=CONTENT_TYPE)
