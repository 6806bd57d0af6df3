"""Whether a port is free, asked before anything is loaded that takes time."""

from __future__ import annotations

import errno
import socket

from app.errors import ConfigError


def check_port(host: str, port: int) -> None:
    """Raise ConfigError if nothing can listen there; the server's own message comes late and long."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            busy = error.errno == errno.EADDRINUSE
            fault = "is in use; choose another with --port" if busy else f"cannot be used: {error.strerror}"
            raise ConfigError(f"port {port} on {host} {fault}") from None
