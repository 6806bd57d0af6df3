"""One sync at a time, however many processes and hosts share the archive.

In: an open archive. Out: whether this caller is the one. The lock is freed at the end of the `with`, and
by the death of its process. It is a courtesy, not a guard: two syncs at once lose nothing, they only ask
GitHub twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.store.dialect_lock import find_lock_holder, take_lock
from app.store.session import Store

LOOK_EVERY_S = 0.5


@contextmanager
def sync_lock(
    store: Store, *, wait_s: float = 0.0, on_wait: Callable[[str], None] | None = None
) -> Iterator[bool]:
    """Hold the lock in the body of the `with`; False there means that another process holds it.

    Args:
        store: the archive that is shared.
        wait_s: how long to wait for another to end.
        on_wait: told once who holds it, before waiting.

    Raises:
        StoreError: the database cannot be used.
    """
    release = take_lock(store.engine)
    if release is None and wait_s > 0:
        if on_wait:
            on_wait(sync_holder(store) or "another process")
        until = time.monotonic() + wait_s
        while release is None and time.monotonic() < until:
            time.sleep(LOOK_EVERY_S)
            release = take_lock(store.engine)
    try:
        yield release is not None
    finally:
        if release is not None:
            release()


def sync_holder(store: Store) -> str | None:
    """Which process syncs this archive now, such as "process 12 on host"; None if none does.

    Raises:
        StoreError: the database cannot be used.
    """
    return find_lock_holder(store.engine)
