"""Connections to HTTP servers, kept for the next call.

The idea: each call is one request whose body is there and one answer that is read once (see `response`).  Python's
standard library makes connections, also through proxies; what is wanted besides is a stack of kept ones and a look at
the environment.  General clients have these, and pass each call through layers for all else, which cost more than
everything else about it.

Guarantee: a connection is one call's at a time.  One whose answer was not read to its end, that its server has closed,
or that nobody used for KEPT_SECONDS, is not used again.  No wait goes past the deadline it was told.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import select
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import SplitResult, quote, unquote, urlsplit
from urllib.request import getproxies

from memory.llm.interrupt import Interrupt
from memory.llm.response import Response

CONNECT_SECONDS = 5.0
KEPT_SECONDS = 5.0  # many servers close what says nothing after as long
KEPT_MAX = 100
# This machine is reached directly: a proxy is for what is outside.
HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
_AS_IT_IS = "/%:=&?~+!$,;'@()*[]"  # in an address; the rest is escaped


class NotConnected(Exception):
    """No connection was made, so nothing was sent."""


@dataclass(frozen=True)
class Address:
    """Where a request goes: the server, what is asked of it, and who asks as far as the URL says (`user:password@`).

    Raises ValueError for what is no address of an HTTP server.
    """

    tls: bool
    host: str
    port: int
    target: str
    basic: str | None = None

    @classmethod
    def of(cls, url: str) -> Address:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable() or " " in parts.netloc:
            raise ValueError("no address of an HTTP server")
        host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode()
        target = quote(f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}", safe=_AS_IT_IS)
        tls = parts.scheme == "https"
        return cls(tls, host, parts.port or (443 if tls else 80), target, _basic(parts))

    @functools.cached_property
    def server(self) -> tuple[bool, str, int]:
        return self.tls, self.host, self.port

    @functools.cached_property
    def authority(self) -> str:
        """The server, as a request's Host names it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


class Connections:
    """Opens, keeps and closes connections.  Any number of threads may use it.

    Proxies are those of the environment when this is made (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY).
    """

    def __init__(self) -> None:
        self._proxies = getproxies()
        self._direct = [name.strip().lower() for name in self._proxies.get("no", "").split(",") if name.strip()]
        self._kept: list[tuple[float, tuple[bool, str, int], socket.socket]] = []  # until when; the newest is the last
        self._lock = threading.Lock()

    def send(
        self,
        address: Address,
        method: str,
        headers: str,
        content: bytes,
        deadline: float,
        interrupt: Interrupt | None = None,
    ) -> Answer:
        """Send a request, its `headers` as `lines_of` makes them, and read the head of its answer.

        `deadline`, of time.monotonic(), and `interrupt` may end both, and the reading of the answer.  Raises
        NotConnected, and OSError for a connection that breaks, TimeoutError among them.
        """
        try:
            proxy = self.proxy_to(address)
        except ValueError as error:
            raise NotConnected(str(error)) from None
        connection = self._take(address.server) or self._open(address, proxy, min(_until(deadline), CONNECT_SECONDS))
        try:
            connection.settimeout(_until(deadline))
            if interrupt is not None:
                interrupt.works_on(connection)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may have answered all the same
                connection.sendall(_head(address, method, headers, len(content), proxy) + content)
            response = Response(connection, deadline)
        except BaseException:
            if interrupt is not None:
                interrupt.called()
            connection.close()
            raise
        return Answer(self, address, connection, response, interrupt)

    def proxy_to(self, address: Address) -> SplitResult | None:
        """The proxy by which a server is reached; None for one that is reached directly.

        Raises ValueError for a proxy that can't be used.
        """
        proxy = self._proxies.get("https" if address.tls else "http") or self._proxies.get("all")
        if not proxy or address.host in HERE or any(_means(name, address) for name in self._direct):
            return None
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError("the environment's proxy must be an address as in http://proxy.example:3128")
        return parts

    def keep(self, address: Address, connection: socket.socket) -> None:
        """Have a connection used again."""
        now = time.monotonic()
        with self._lock:
            self._kept.append((now + KEPT_SECONDS, address.server, connection))
            while self._kept[0][0] < now or len(self._kept) > KEPT_MAX:
                self._kept.pop(0)[2].close()

    def close(self) -> None:
        """Close what is kept."""
        with self._lock:
            while self._kept:
                self._kept.pop()[2].close()

    def _take(self, server: tuple[bool, str, int]) -> socket.socket | None:
        """The connection to `server` that was used last, if it can still be."""
        while True:
            with self._lock:
                found = next((one for one in reversed(self._kept) if one[1] == server), None)
                if found is None:
                    return None
                self._kept.remove(found)
            until, _, connection = found
            # An answer that nobody closed is ended by the garbage collector, and so is its socket, in any order.
            if time.monotonic() < until and connection.fileno() >= 0 and not _has_news(connection):
                return connection
            connection.close()

    def _open(self, address: Address, proxy: SplitResult | None, seconds: float) -> socket.socket:
        host, port = (proxy.hostname or "", proxy.port or 80) if proxy is not None else (address.host, address.port)
        opening: HTTPConnection
        if address.tls:
            opening = HTTPSConnection(host, port, timeout=seconds, context=_tls())
            if proxy is not None:
                opening.set_tunnel(address.host, address.port, _proxy_headers(proxy))
        else:
            opening = HTTPConnection(host, port, timeout=seconds)
        try:
            opening.connect()
        except (OSError, HTTPException, UnicodeError) as error:
            opening.close()
            raise NotConnected(str(error) or type(error).__name__) from None
        connection: socket.socket = opening.sock
        return connection


class Answer:
    """The answer to a request: read its `response`, then `close` it."""

    def __init__(
        self,
        connections: Connections,
        address: Address,
        connection: socket.socket,
        response: Response,
        interrupt: Interrupt | None,
    ) -> None:
        self.response = response
        self._connections = connections
        self._address = address
        self._connection: socket.socket | None = connection
        self._interrupt = interrupt

    def close(self) -> None:
        """Give the connection back, or close it when the body was not read to its end."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._interrupt is not None:
            self._interrupt.called()
        if self.response.whole and self.response.marks_its_end:
            self._connections.keep(self._address, connection)
        else:
            connection.close()


def lines_of(headers: Mapping[str, str]) -> str:
    """Headers as they are sent, made once for many requests."""
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


def _until(deadline: float) -> float:
    """The time-out that ends there.  Never none at all, by which sockets understand something else."""
    return max(deadline - time.monotonic(), 0.001)


def _head(address: Address, method: str, headers: str, size: int, proxy: SplitResult | None) -> bytes:
    target = address.target
    if method != "GET":
        headers += f"Content-Length: {size}\r\n"
    if proxy is not None and not address.tls:  # which sees the request itself
        target = f"http://{address.authority}{target}"
        headers += lines_of(_proxy_headers(proxy))
    return f"{method} {target} HTTP/1.1\r\nHost: {address.authority}\r\n{headers}\r\n".encode("ascii")


def _has_news(connection: socket.socket) -> bool:
    """Whether there is something to read on a connection that waits for nothing: it was closed."""
    polled = select.poll()
    polled.register(connection, select.POLLIN)
    return bool(polled.poll(0))


@functools.cache
def _tls() -> ssl.SSLContext:
    from httpcore2 import default_ssl_context  # it knows where each system keeps its certificates

    return default_ssl_context()


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    basic = _basic(proxy)
    return {"Proxy-Authorization": basic} if basic is not None else {}


def _basic(parts: SplitResult) -> str | None:
    if not parts.username and not parts.password:
        return None
    said = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(said.encode()).decode()}"


def _means(name: str, address: Address) -> bool:
    """Whether a name in NO_PROXY means a server: `*`, a domain, perhaps with a port, an address, or a network."""
    if name == "*":
        return True
    try:
        return ipaddress.ip_address(address.host) in ipaddress.ip_network(name.strip("[]"), strict=False)
    except ValueError:  # one of them is a name
        domain = name.removeprefix("*").removeprefix(".")
        named = (address.host, f"{address.host}:{address.port}")
        return any(one == domain or one.endswith(f".{domain}") for one in named)
