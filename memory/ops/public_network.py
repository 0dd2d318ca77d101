"""Network of public addresses, for requests to addresses that others chose: what only this machine can reach is not.

Invariants [test_webhooks]:
- The address that is checked is the one that is connected to.
- Nothing lasts longer than the deadline, however slowly the other side sends.
"""

import ipaddress
import socket
import time
from collections.abc import Iterable
from typing import Any

import httpcore2

from config.parsers import Network

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")  # of RFC 8215; Python calls it public before 3.11.10

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class NotPublic(Exception):
    """Address that may not be connected to."""


def is_allowed(address: Address, networks: Iterable[Network], *, is_encrypted: bool) -> bool:
    """Return whether an address that others chose may be connected to. networks: allowed although not public."""
    if isinstance(address, ipaddress.IPv6Address):  # which may stand for an IPv4 address
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_allowed(inner, networks, is_encrypted=is_encrypted)
    if any(address in network for network in networks):
        return True
    return is_encrypted and address.is_global and not address.is_multicast and address not in _LOCAL_NAT64


class PublicNetwork(httpcore2.NetworkBackend):
    """Connects to addresses that may be reached, within a deadline for all that follows. Raises NotPublic."""

    def __init__(self, seconds: float, networks: Iterable[Network] = (), *, is_encrypted: bool = True) -> None:
        self._networks, self._is_encrypted = networks, is_encrypted
        self._deadline = time.monotonic() + seconds

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
            raise NotPublic(f"the address of {host} is not public")
        for untried, address in zip(range(len(allowed), 0, -1), allowed, strict=True):
            left = max(0.01, self._deadline - time.monotonic()) / untried
            try:
                stream = httpcore2.SyncBackend().connect_tcp(address, port, left, None, socket_options)
                break
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if untried == 1:
                    raise
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
