"""One test over many rows: for tables of hundreds, where a test of its own for each costs more than the check."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

Test = Callable[..., None]


def over_rows(name: str, rows: Iterable[Any], *, label: Callable[[Any], str] = str) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize(name, rows)`, as one test that reports every row that fails.

    For tests without state of their own: fixtures are made once for all rows.

    Args:
        name: the argument that takes a row.
        rows: the values.
        label: what a row is called when it fails.
    """
    listed = list(rows)
    assert listed, f"no rows for {name}"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            faults: list[Exception] = []
            for row in listed:
                try:
                    test(**fixtures, **{name: row})
                except Exception as error:
                    error.add_note(f"{name}: {label(row)}")
                    faults.append(error)
            if faults:
                raise ExceptionGroup(f"{len(faults)} of {len(listed)} rows fail", faults)

        signature = inspect.signature(test)
        rest = [parameter for key, parameter in signature.parameters.items() if key != name]
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run

    return decorate
