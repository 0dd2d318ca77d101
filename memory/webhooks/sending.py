"""Post to addresses that others chose, without reaching what only this machine can.

Invariants [test_webhooks]:
- The address that is checked is the one that is connected to. Private, loopback, link-local and all other addresses
  that are not public are reached only where WEBHOOK_NETWORKS names them, and only there without TLS.
- No redirect is followed, no proxy is taken, no body is read, and nothing lasts longer than DELIVERY_SECONDS.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import httpcore2

from config.parsers import Network
from memory.ops.public_network import NotPublic, PublicNetwork
from models.events import Event
from schemas.events import EVENT

DELIVERY_SECONDS = 15.0
USER_AGENT = "Recap-Webhooks/1"
SECRET_PREFIX = "whsec_"  # nosec B105 # of Standard Webhooks


@dataclass(frozen=True)
class Answer:
    """Result of a delivery. status: of HTTP. error: why it counts as failed."""

    status: int | None
    error: str | None


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the header webhook-signature, as Standard Webhooks defines it."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(signed).decode()}"


def post(url: str, secrets: Iterable[str], event: Event, at: datetime, networks: Iterable[Network]) -> Answer:
    """Post an event to an address, signed with each of the secrets; any answer of 2xx is a success."""
    is_encrypted, timestamp = url.lower().startswith("https:"), int(at.timestamp())
    content = EVENT.dumps(event).encode()
    headers: dict[bytes | str, bytes | str] = {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "Connection": "close",
        "webhook-id": event.id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign(secret, event.id, timestamp, content) for secret in secrets),
    }
    timeout = dict.fromkeys(("connect", "read", "write", "pool"), DELIVERY_SECONDS)
    context = ssl.create_default_context() if is_encrypted else None  # which reads SSL_CERT_FILE
    network = PublicNetwork(DELIVERY_SECONDS, networks, is_encrypted=is_encrypted)
    try:
        with (
            httpcore2.ConnectionPool(context, network_backend=network) as pool,
            pool.stream("POST", url, headers=headers, content=content, extensions={"timeout": timeout}) as response,
        ):
            status = response.status
    except NotPublic:
        more = "" if is_encrypted else ", or without TLS"
        return Answer(None, f"its address is not public{more}, and the server's WEBHOOK_NETWORKS does not name it")
    except httpcore2.TimeoutException:
        return Answer(None, f"no answer in {DELIVERY_SECONDS:g} seconds")
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError, UnicodeError) as error:
        return Answer(None, f"{type(error).__name__}: {error}"[:200])
    if 200 <= status < 300:
        return Answer(status, None)
    return Answer(status, "a redirect, which is not followed" if 300 <= status < 400 else f"it answered {status}")
