"""The page: chat, see what is remembered, correct it, forget it.

Plain HTML, CSS and JavaScript modules, served as they are.  Everything they show comes from the public API.
Guarantee: whatever text the page shows, it runs no script and loads nothing but its own files.  The browser enforces
this by the policy below, in addition to the sanitising in static/js/page/markdown.js.
"""

from __future__ import annotations

from flask import Blueprint, Response, render_template

from memory.sections import SECTIONS

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",  # only the sanitiser's policy can turn a string into HTML
        "trusted-types dompurify",
    )
)

blueprint = Blueprint("web", __name__, template_folder="templates", static_folder="static")


@blueprint.route("/")
def page() -> str:
    """The page."""
    return render_template("page.html", sections=[(part.name, part.title, part.kind) for part in SECTIONS])


@blueprint.after_request
def _protect(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Cache-Control"] = "no-cache"  # kept, but checked for changes: an upgrade shows at once
    return response
