"""One test over many rows: for tables of hundreds, where a test of its own for each costs more than the check."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

Test = Callable[..., None]


def over_rows(
    names: str | tuple[str, ...], rows: Iterable[Any], *, label: Callable[[Any], str] = str
) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize(names, rows)`, as one test that reports every row that fails.

    For tests without state of their own: fixtures are made once for all rows.

    Args:
        names: the argument that takes a row, or those that take its parts.
        rows: the values.
        label: what a row is called when it fails.
    """
    listed = list(rows)
    assert listed, f"no rows for {names}"
    taken = (names,) if isinstance(names, str) else names

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            faults: list[Exception] = []
            for row in listed:
                try:
                    parts = (row,) if isinstance(names, str) else row
                    test(**fixtures, **dict(zip(taken, parts, strict=True)))
                except Exception as error:
                    error.add_note(f"{names}: {label(row)}")
                    faults.append(error)
            if faults:
                raise ExceptionGroup(f"{len(faults)} of {len(listed)} rows fail", faults)

        signature = inspect.signature(test)
        rest = [parameter for key, parameter in signature.parameters.items() if key not in taken]
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run

    return decorate
