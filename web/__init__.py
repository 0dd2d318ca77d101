"""Web pages: Recap's own page, to chat and to manage memories, Swagger UI, and the guide.

Recap's page consists of plain HTML, CSS and JavaScript modules, without a build step. All its data comes from the
public API. Whatever text the page shows, it runs only its own scripts and loads only its own files (test_safety): the
browser enforces this with the policy below, in addition to the sanitising in static/js/page/markdown.js.

The guide at /docs/guide/ is the documentation site.  `make docs` builds it from docs/, before Recap is deployed.

The page's texts are in the catalogues texts/*.json, one for each language, which have the same keys.  Errors that the
server words well enough in English are in the others alone.

Files are sent compressed, to a third of their size.  Browsers keep them, so this is work for a first visit only.
"""

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, make_response, redirect, render_template, request, send_from_directory
from flask_swagger_ui import get_swaggerui_blueprint
from werkzeug.wrappers import Response as BaseResponse

from memory.errors import NotFound
from models.sections import SECTIONS

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
        "require-trusted-types-for 'script'",  # only DOMPurify's policy can turn a string into HTML
        "trusted-types dompurify",
    )
)

# `validatorUrl` keeps Swagger UI from sending the document to an external validator.  A fixed `oauth2RedirectUrl` keeps
# its inline script the same for all requests.
_SWAGGER = {"app_name": "Recap", "validatorUrl": None, "oauth2RedirectUrl": None}

LANGUAGES = ("en", "de")  # the first is for browsers that ask for neither
TEXTS = {name: json.loads((Path(__file__).parent / "texts" / f"{name}.json").read_text("utf-8")) for name in LANGUAGES}

GUIDE = Path(__file__).parent / "guide"

docs = get_swaggerui_blueprint(".", "../openapi.json", config=_SWAGGER)
blueprint = Blueprint("web", __name__, template_folder="templates", static_folder="static")


@blueprint.app_context_processor
def language() -> dict[str, Any]:
    """Give each page its texts, in the language that the browser prefers."""
    # Not `best_match`: for en-GB,de;q=0.5 it finds de, because an exact match counts above a language with a region.
    preferred = [tag.partition("-")[0].lower() for tag in request.accept_languages.values()]
    name = next((name for name in preferred if name in LANGUAGES), LANGUAGES[0])
    return {"language": name, "texts": TEXTS[name]}


@blueprint.route("/")
def page() -> Response:
    """Serve the page."""
    sections = [(part.name, part.kind) for part in SECTIONS]
    response = make_response(render_template("page.html", sections=sections))
    response.vary.add("Accept-Language")
    return response


@blueprint.after_request
def _protect(response: Response) -> Response:
    if response.mimetype == "text/html":  # files get the middleware's, which is shorter and allows nothing
        response.headers["Content-Security-Policy"] = POLICY
    response.headers["Cache-Control"] = "no-cache"  # cached but revalidated, so that an upgrade takes effect at once
    response.vary.add("Accept-Encoding")
    if response.status_code == 200 and request.accept_encodings["gzip"]:
        response.direct_passthrough = False  # else a file would not be read here
        response.set_data(gzip.compress(response.get_data(), mtime=0))
        response.content_encoding = "gzip"
    return response


@docs.route("")
@docs.route("/guide")
def add_slash() -> BaseResponse:
    """Redirect by a relative address: Flask's would leave the path below which a proxy serves Recap."""
    return redirect(f"{request.path.rpartition('/')[2]}/", code=308)


@docs.route("/guide/")
@docs.route("/guide/<path:file>")
def guide(file: str = "index.html") -> Response:
    """Serve a file of the guide, where it was built."""
    if not GUIDE.is_dir():
        raise NotFound(
            "guide_not_built",
            "This installation has no guide. To build it, run `make docs` in Recap's folder; no restart is needed. "
            "Its pages are also the files in docs/.",
        )
    # Pages whole and never as 304 "Not Modified", because their policy is made from their scripts.
    return send_from_directory(GUIDE, file, conditional=not file.endswith(".html"))


@docs.after_request
def _protect_docs(response: Response) -> Response:
    """Set the policy of Swagger UI and the guide, which allows their own files, inline scripts, and inline styles."""
    if response.mimetype == "text/html":
        response.direct_passthrough = False  # else a file would not be read here
        scripts = re.findall(r"<script>(.*?)</script>", response.get_data(as_text=True), re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
        allowed = " ".join(["'self'", *(f"'sha256-{digest}'" for digest in digests)])
        response.headers["Content-Security-Policy"] = (
            f"default-src 'none'; script-src {allowed}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
    return response
