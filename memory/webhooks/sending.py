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
import ipaddress
import socket
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpcore2

from config.parsers import Network
from models.events import Event
from schemas.events import EVENT

DELIVERY_SECONDS = 15.0
USER_AGENT = "Recap-Webhooks/1"
SECRET_PREFIX = "whsec_"  # nosec B105 # of Standard Webhooks
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Answer:
    """Result of a delivery. status: of HTTP. error: why it counts as failed."""

    status: int | None
    error: str | None


class _Refused(Exception):
    """Address that may not be connected to; says why."""


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the header webhook-signature, as Standard Webhooks defines it."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(signed).decode()}"


def is_allowed(address: Address, networks: Iterable[Network], *, is_encrypted: bool) -> bool:
    """Return whether a webhook may connect to an address."""
    if isinstance(address, ipaddress.IPv6Address):  # which may stand for an IPv4 address
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_allowed(inner, networks, is_encrypted=is_encrypted)
    if any(address in network for network in networks):
        return True
    return is_encrypted and address.is_global and not address.is_multicast


def post(url: str, secret: str, event: Event, at: datetime, networks: Iterable[Network]) -> Answer:
    """Post a signed event to an address; any answer of 2xx is a success."""
    is_encrypted, timestamp = url.lower().startswith("https:"), int(at.timestamp())
    content = EVENT.dumps(event).encode()
    headers: dict[bytes | str, bytes | str] = {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "Connection": "close",
        "webhook-id": event.id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(secret, event.id, timestamp, content),
    }
    timeout = dict.fromkeys(("connect", "read", "write", "pool"), DELIVERY_SECONDS)
    context = ssl.create_default_context() if is_encrypted else None  # which reads SSL_CERT_FILE
    try:
        with (
            httpcore2.ConnectionPool(context, network_backend=_Backend(networks, is_encrypted=is_encrypted)) as pool,
            pool.stream("POST", url, headers=headers, content=content, extensions={"timeout": timeout}) as response,
        ):
            status = response.status
    except _Refused as refused:
        return Answer(None, str(refused))
    except httpcore2.TimeoutException:
        return Answer(None, f"no answer in {DELIVERY_SECONDS:g} seconds")
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError, UnicodeError) as error:
        return Answer(None, f"{type(error).__name__}: {error}"[:200])
    if 200 <= status < 300:
        return Answer(status, None)
    return Answer(status, "a redirect, which is not followed" if 300 <= status < 400 else f"it answered {status}")


class _Backend(httpcore2.NetworkBackend):
    """Connects to addresses that may be reached, within a deadline for all that follows."""

    def __init__(self, networks: Iterable[Network], *, is_encrypted: bool) -> None:
        self._networks, self._is_encrypted = networks, is_encrypted
        self._deadline = time.monotonic() + DELIVERY_SECONDS

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore2.NetworkStream:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found)
        allowed = [
            address
            for address in addresses
            if is_allowed(ipaddress.ip_address(address), self._networks, is_encrypted=self._is_encrypted)
        ]
        if not allowed:
            more = "" if self._is_encrypted else ", or without TLS"
            raise _Refused(f"its address is not public{more}, and the server's WEBHOOK_NETWORKS does not name it")
        left = max(0.01, self._deadline - time.monotonic())
        stream = httpcore2.SyncBackend().connect_tcp(allowed[0], port, left, None, socket_options)
        return _Stream(stream, self._deadline)


class _Stream(httpcore2.NetworkStream):
    """Connection that ends at a deadline, however slowly the other side sends."""

    def __init__(self, stream: httpcore2.NetworkStream, deadline: float) -> None:
        self._stream, self._deadline = stream, deadline

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout
        return left

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, self._left()), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
