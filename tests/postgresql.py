"""PostgreSQL from the installed binaries: started, stopped and killed by tests, as an unprivileged user."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from pwd import getpwnam
from typing import Any

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.store.session import open_store

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 20.0
_NOT_SYNCED = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_wal_size=64MB")
MEMORY = Path("/dev") / "shm"
MEMORY_BYTES_MIN = 4 << 30
"""As much must be free there for a server's files: its hundred databases take a fifth of that."""


class CannotStartError(Exception):
    """Why there is no server."""


@dataclass
class PostgreSQL:
    """A server reached by a socket in its own folder."""

    binaries: Path
    folder: Path
    identity: dict[str, Any]
    settings: tuple[str, ...] = _NOT_SYNCED
    names: Iterator[int] = field(default_factory=count)
    process: subprocess.Popen[bytes] | None = None
    prefix: str = "made"
    """Keeps apart the databases of several test processes on one server."""

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://triage@/{database}?host={self.folder}"

    def new_database(self, template: str = "template0") -> str:
        """The address of a database of its own: empty, or a copy of another one that nobody has open."""
        name = f"{self.prefix}_{next(self.names)}"
        self.run_as_admin(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def run_as_admin(self, statement: str) -> None:
        admin = open_store(self.url("postgres"))
        with admin.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(statement))
        admin.close()

    def start(self) -> None:
        settings = ("listen_addresses=", "logging_collector=off", *self.settings)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    self.binaries / "postgres",
                    "-D",
                    self.folder / "data",
                    "-k",
                    self.folder,
                    *(part for setting in settings for part in ("-c", setting)),
                ],
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=self.folder,
                **self.identity,
            )
        self._wait_until_up(self.process)

    def _wait_until_up(self, process: subprocess.Popen[bytes]) -> None:
        store = open_store(self.url("postgres"))
        until = time.monotonic() + START_TIMEOUT_S
        try:
            while True:
                try:
                    with store.engine.connect():
                        return
                except DBAPIError:
                    if process.poll() is not None or time.monotonic() > until:
                        found = (self.folder / "log").read_text()[-500:]
                        raise CannotStartError(f"PostgreSQL did not start: {found}") from None
                    time.sleep(0.05)
        finally:
            store.close()

    def stop(self) -> None:
        """End it at once, and every connection with it; what was committed stays."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def remove(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)  # nothing in it is to be kept
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def set_up_server(*settings: str) -> PostgreSQL:
    """A server that is not started yet; without settings it does not sync to disk.

    Raises:
        CannotStartError: there are no binaries, or nobody to run it as.
    """
    binaries = _find_binaries()
    if binaries is None:
        raise CannotStartError("no PostgreSQL binaries in /usr/lib/postgresql or on the PATH")
    user = _unprivileged_user()
    folder = Path(tempfile.mkdtemp(prefix="triage-pg-", dir=_folder_in_memory()))
    identity: dict[str, Any] = {}
    if user is not None:
        os.chown(folder, getpwnam(user).pw_uid, getpwnam(user).pw_gid)
        identity = {"user": user, "group": getpwnam(user).pw_gid, "extra_groups": []}
    subprocess.run(
        [
            binaries / "initdb",
            "-D",
            folder / "data",
            "-U",
            "triage",
            "--auth=trust",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C",
        ],
        check=True,
        capture_output=True,
        cwd=folder,
        **identity,
    )
    return PostgreSQL(binaries, folder, identity, settings or _NOT_SYNCED)


def _folder_in_memory() -> Path | None:
    """Where databases are made four times as quickly as on a disk; None where there is no room."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN
    return MEMORY if has_room and os.access(MEMORY, os.W_OK) else None


def _find_binaries() -> Path | None:
    installed = sorted(
        (path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")),
        key=lambda path: [int(part) for part in path.parent.name.split(".") if part.isdigit()],
    )
    if installed:
        return installed[-1]
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


def _unprivileged_user() -> str | None:
    """PostgreSQL refuses to run as root; None where we are somebody else already."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            getpwnam(name)
        except KeyError:
            continue
        return name
    raise CannotStartError("running as root, and there is neither a user postgres nor nobody")
