"""Programs that ask to be connected: who they say they are, and where their people may be sent back to.

Anybody may register a program, under any name, so a registration proves nothing and nothing of it is stored: the
client_id holds what was registered. Or a client_id is the https address of the program's own description (a Client ID
Metadata Document), which is fetched when somebody signs in, from public addresses alone.
"""

import base64
import json
import re
import ssl
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

import httpcore2
from cachetools.func import ttl_cache

from config.parsers import Network
from memory.access.keys import is_loopback
from memory.errors import InvalidRequest, Unauthenticated
from memory.ops.public_network import NotPublic, PublicNetwork
from models.oauth import OAuthClient

CLIENT_ID = "recap."  # the beginning of those that are given here
CLIENT_ID_CHARS = 4000  # with the rest of the request, it has to fit into an address
NAME_CHARS = 100
REDIRECTS_MAX = 20
DOCUMENT_BYTES = 64_000
FETCH_SECONDS = 5.0
NETWORKS: tuple[Network, ...] = ()  # that are fetched from although they are not public
CACHE_SECONDS = 300.0
NEVER_OPENED = {"javascript", "data", "file", "blob", "vbscript", "about", "ftp", "ws", "wss", "view-source"}

_URI = re.compile(r"[!$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]{1,1000}")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")


def register(name: str, redirect_uris: Sequence[str]) -> OAuthClient:
    """Return a program with its client_id. Raises InvalidRequest."""
    wrong = next((uri for uri in redirect_uris if not _may_redirect(uri)), None)
    if wrong is not None:
        text = (
            f"{wrong[:200]!r} is no redirect URI: use https, http on this computer, or a scheme of the program's own."
        )
        raise InvalidRequest("invalid_redirect_uri", text, status=400)
    content = json.dumps([_shown(name), *redirect_uris], ensure_ascii=False, separators=(",", ":"))
    client_id = CLIENT_ID + base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")
    if len(client_id) > CLIENT_ID_CHARS:
        raise InvalidRequest("invalid_client_metadata", "The redirect URIs are too long, or too many.", status=400)
    return OAuthClient(client_id, _shown(name), tuple(redirect_uris))


def find_client(client_id: str) -> OAuthClient:
    """Return the program of a client_id. Raises InvalidRequest; Unauthenticated for a wrong description."""
    try:
        if client_id.startswith("https://"):
            return _described(client_id)
        content = client_id.removeprefix(CLIENT_ID)
        name, *redirect_uris = json.loads(base64.b64decode(content + "=" * (-len(content) % 4), b"-_", validate=True))
        client = register(name, redirect_uris)
    except (ValueError, TypeError, RecursionError):
        client = None
    if client is None or client.id != client_id:
        raise InvalidRequest("invalid_client", "Recap does not know this program. Connect it anew.", status=400)
    return client


def may_return_to(client: OAuthClient, redirect_uri: str) -> bool:
    """Return whether a redirect URI is exactly one of the program's; on this computer, with any port (RFC 8252)."""
    return _may_redirect(redirect_uri) and _without_port(redirect_uri) in {
        _without_port(uri) for uri in client.redirect_uris
    }


def _may_redirect(uri: str) -> bool:
    if not _URI.fullmatch(uri):  # so without a fragment too
        return False
    try:
        parts = urlsplit(uri)
        host = parts.hostname
    except ValueError:
        return False
    if parts.username is not None or parts.scheme == "http":
        return parts.username is None and is_loopback(host or "")
    if not _SCHEME.fullmatch(parts.scheme) or parts.scheme in NEVER_OPENED:
        return False
    return bool(host) or (parts.scheme != "https" and "." in parts.scheme)  # as com.example.app:/connected


def _without_port(uri: str) -> str | SplitResult:
    with suppress(ValueError):
        parts = urlsplit(uri)
        if parts.scheme == "http" and is_loopback(parts.hostname or "") and parts.username is None:
            return parts._replace(netloc=parts.netloc.removesuffix(f":{parts.port}"))
    return uri


def _shown(name: str) -> str:
    """Return a program's name as a page may show it: nothing hidden, and nothing that changes the direction of text."""
    return "".join(char for char in name if char.isprintable()).strip()[:NAME_CHARS] or "A program without a name"


@ttl_cache(maxsize=256, ttl=CACHE_SECONDS)
def _described(client_id: str) -> OAuthClient:
    host = urlsplit(client_id).hostname or ""
    try:
        if not _may_redirect(client_id) or urlsplit(client_id).path in ("", "/"):
            raise ValueError("its address is no client_id")
        document = json.loads(_fetch(client_id))
        if document["client_id"] != client_id:
            raise ValueError("it describes another client_id")
        client = register(document["client_name"], document["redirect_uris"][:REDIRECTS_MAX])
    except (NotPublic, httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException, OSError) as error:
        raise _undescribed(host, f"it can't be fetched ({error})") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _undescribed(host, f"it is no Client ID Metadata Document ({error})") from error
    return OAuthClient(client_id, client.name, client.redirect_uris, host)


def _undescribed(host: str, problem: str) -> Unauthenticated:
    return Unauthenticated("invalid_client", f"The program names a description of itself at {host}, but {problem}.")


def _fetch(url: str) -> bytes:
    """Fetch a document without following redirects. Raises ValueError, OSError, NotPublic and httpcore2's errors."""
    content = bytearray()
    with (
        httpcore2.ConnectionPool(
            ssl.create_default_context(), network_backend=PublicNetwork(FETCH_SECONDS, NETWORKS)
        ) as pool,
        pool.stream("GET", url, headers={"Accept": "application/json"}) as answer,
    ):
        if answer.status != 200:
            raise ValueError(f"the answer has status {answer.status}")
        for piece in answer.iter_stream():
            content += piece
            if len(content) > DOCUMENT_BYTES:
                raise ValueError("it is too long")
    return bytes(content)
