"""Bytecode that one process compiled serves all others, also where the environment forbids to write any."""

from __future__ import annotations

import os
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / ".pytest_cache" / "bytecode"


def keep_bytecode() -> None:
    """Under PYTHONDONTWRITEBYTECODE keep bytecode in pytest's own folder, beside no source.

    Otherwise each worker and each of some fifty processes that the tests start would compile every library
    anew: 2.4 s of CPU for one that imports the server.
    """
    if sys.dont_write_bytecode:
        sys.dont_write_bytecode = False
        sys.pycache_prefix = str(FOLDER)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(FOLDER)
