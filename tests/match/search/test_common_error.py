"""Which stored issues hold an error's message."""

from __future__ import annotations

import pytest

from app.extract.log.root_cause import read_errors
from app.match.search.common_error import find_reports_of
from app.match.search.terms import Terms, line_texts, terms_of
from app.store.derived.search_index import hash_terms, index_terms
from app.store.github.issues import add_repository, find_repository, save_issues
from app.store.session import Store
from tests.samples import REPO, a_traceback, an_issue

MESSAGE = "No spare shelf left for the pigeon blocks. Try raising the loft share."
UNKNOWN_ARGUMENT = "TypeError: PigeonLoft.__init__() got an unexpected keyword argument '{}'"
SCATTERED = "Falcon crane dropped eleven cargo crates"
IN_BRACKETS = "Nested falcon width ({}) divides no pigeon stride of the gantry (at all)."
MISSING = "libpigeon_loft.so: cannot open shared carrier object"
TEXTS = {
    11: a_traceback(f"ValueError: {MESSAGE}", "vllm/sparrow.py:run"),
    12: a_traceback(f"ValueError: {MESSAGE}", "vllm/starling.py:run"),
    13: a_traceback("KeyError: 'gadget'", "vllm/gadget.py:run"),
    14: "It hangs.",
    15: a_traceback(UNKNOWN_ARGUMENT.format("sparrow_length"), "vllm/loft.py:run"),
    16: a_traceback(UNKNOWN_ARGUMENT.format("sparrow_length"), "vllm/loft.py:run"),
    17: "The gantry of loft seven lost its pigeon ballast.\n",
    18: "The gantry of loft seven lost its pigeon ballast.\n",
    19: a_traceback(f"ImportError: {MISSING}: No such file or directory", "vllm/loft.py:load"),
    20: a_traceback(f"ImportError: {MISSING}: No such file or directory", "vllm/loft.py:load"),
    22: ("\n" + "Nothing else was seen. " * 12).join(SCATTERED.split()),
    23: ("\n" + "Nothing else was seen. " * 12).join(SCATTERED.split()),
    21: "loft.py: error: unrecognized arguments: --perch-count 2",
    24: "ModuleNotFoundError: No module named 'pigeon._C', and then pigeon.loft.seeds was imported",
    25: a_traceback("OSError: [Errno 24] Too many open files", "vllm/loft.py:load"),
    26: a_traceback(f"ValueError: {IN_BRACKETS.format(9)}", "vllm/loft.py:load"),
    28: "A gantry cannot be used with falcons.",
    29: "A crane cannot be used with sparrows.",
    27: a_traceback(f"ValueError: {IN_BRACKETS.format(9)}", "vllm/loft.py:load"),
    33: "ImportError: cannot import name 'Perch' from 'pigeon.loft' (/opt/pigeon/loft.py)",
    34: a_traceback('TypeError: can only concatenate str (not "list") to str', "vllm/perch.py:render"),
    35: a_traceback('TypeError: can only concatenate str (not "list") to str', "vllm/crate.py:join"),
    36: a_traceback("RuntimeError: Failed to infer perch kind", "vllm/kind.py:infer"),
    37: a_traceback("RuntimeError: Failed to infer perch kind", "vllm/kind.py:infer"),
    38: "ValueError: cannot identify feather scan <_io.BytesIO object at 0x7fbc2d10>",
    39: "ValueError: cannot identify feather scan <_io.BytesIO object at 0x7fbc2d77>",
    40: a_traceback("ValueError: SparrowForCausalLM lets no pigeon roost in parallel", "vllm/roost.py:check"),
    41: a_traceback("ValueError: StarlingModel lets no pigeon roost in parallel", "vllm/roost.py:check"),
}


@pytest.fixture
def base(store: Store) -> Store:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [an_issue(number, body=text) for number, text in TEXTS.items()])
        for number, text in TEXTS.items():
            index_terms(session, repo_id, {number: hash_terms(_terms(text))})
    return store


def _terms(text: str) -> Terms:
    lines, errors = read_errors(text)
    return terms_of(line_texts(lines), errors)


def holders(
    store: Store,
    message: str,
    hidden: tuple[int, ...] = (),
    likeliest: int | None = None,
    frame: str | None = None,
) -> list[int]:
    with store.reading() as session:
        repo_id = find_repository(session, REPO) or 0
        excluded = frozenset((repo_id, number) for number in hidden)
        likest = (repo_id, likeliest) if likeliest else None
        found = find_reports_of(session, message, [repo_id], exclude=excluded, likeliest=likest, frame=frame)
        return sorted(number for _, number in found)


def test_the_issues_that_hold_most_of_a_message_are_found(base: Store) -> None:
    assert holders(base, MESSAGE) == [11, 12]
    assert holders(base, "No spare shelf left for the pigeon blocks. It needs 12 more.") == [11, 12]


def test_what_the_message_is_about_does_not_count(base: Store) -> None:
    assert holders(base, "No spare shelf left for the pigeon blocks of `zeppelin_hangar`") == [11, 12]


def test_words_that_stand_apart_are_no_message(base: Store) -> None:
    assert holders(base, "The gantry of loft seven lost its pigeon ballast") == [17, 18]
    assert holders(base, SCATTERED) == []


def test_where_only_the_name_says_what_is_wrong_it_counts(base: Store) -> None:
    assert holders(base, UNKNOWN_ARGUMENT.format("finch_length")) == []
    assert holders(base, UNKNOWN_ARGUMENT.format("sparrow")) == []
    assert holders(base, UNKNOWN_ARGUMENT.format("sparrow_length")) == [15, 16]
    assert holders(base, UNKNOWN_ARGUMENT.format("sparrow_length"), hidden=(15,)) == [16]
    assert holders(base, "loft.py: error: unrecognized arguments: --loft-size 4 --perch-count 2") == [21]


def test_a_name_that_stands_elsewhere_is_not_the_one_that_is_missed(base: Store) -> None:
    assert holders(base, "No module named 'pigeon.loft.seeds'") == []
    assert holders(base, "No module named 'pigeon._C'") == [24]


def test_one_report_is_no_common_error(base: Store) -> None:
    assert holders(base, MESSAGE, hidden=(12,)) == []


def test_one_report_is_enough_if_it_is_the_likeliest_match_and_names_the_same(base: Store) -> None:
    assert holders(base, MESSAGE, hidden=(12,), likeliest=11) == [11]
    assert holders(base, MESSAGE, hidden=(12,), likeliest=13) == []
    assert holders(base, f"{MESSAGE} Or drop `zeppelin`.", hidden=(12,), likeliest=11) == []


def test_one_report_of_a_message_that_unlike_faults_share_is_no_kind_of_error(base: Store) -> None:
    died = "Worker proc VllmWorker-1 died unexpectedly, shutting down executor."
    with base.unit_of_work() as session:
        repo_id = find_repository(session, REPO) or 0
        save_issues(session, repo_id, [an_issue(number, body=died) for number in (31, 32)])
        index_terms(session, repo_id, {n: hash_terms(_terms(died)) for n in (31, 32)})

    assert holders(base, died, hidden=(32,)) == []
    assert holders(base, died) == [31, 32]


def test_of_the_systems_words_that_name_one_failure_one_report_is_enough(base: Store) -> None:
    assert holders(base, "[Errno 24] Too many open files") == [25]


def test_a_bracket_within_a_sentence_does_not_end_its_opening(base: Store) -> None:
    assert holders(base, IN_BRACKETS.format(64)) == [26, 27]
    assert holders(base, "Nested falcon width (64) is written in zeppelin inches of the hangar") == []


def test_a_few_common_words_name_no_kind(base: Store) -> None:
    assert holders(base, "--perch-count=2 cannot be used with --loft (no perches there).") == []


def test_what_stands_before_the_systems_words_is_the_message(base: Store) -> None:
    message = "libpigeon_loft.so: cannot open shared carrier object"

    assert holders(base, f"{message}: No such file or directory") == [19, 20]


@pytest.mark.parametrize(
    "message",
    [
        "",
        "x",
        'File "/loft/pigeon.py", line 2, in settle',
        "Traceback (most recent call last): (Loft pid=7)",
        "[Errno 2] No such file or directory: '/a'",
        "'gadget'",
        "the hangar of zeppelins burns",
    ],
)
def test_words_of_a_system_and_of_nobody_name_no_kind(base: Store, message: str) -> None:
    assert holders(base, message) == []


def test_a_name_that_cannot_be_imported_is_known_together_with_its_module(base: Store) -> None:
    assert holders(base, "cannot import name 'Perch' from 'pigeon.loft' (unknown location)") == [33]
    assert holders(base, "cannot import name 'Perch' from 'pigeon.hangar' (unknown location)") == []


def test_words_of_the_language_name_a_kind_where_the_same_frame_raised_them(base: Store) -> None:
    message = 'can only concatenate str (not "list") to str'

    assert holders(base, message, frame="perch.py:render") == [34]
    assert holders(base, message, frame="loft.py:load") == []
    assert holders(base, message) == []


def test_advice_that_a_later_version_adds_changes_no_kind(base: Store) -> None:
    message = "Failed to infer perch kind, please set the variable `PIGEON_LOG=DEBUG` to see more of the loft"

    assert holders(base, message) == [36, 37]


def test_where_an_object_stands_in_memory_is_no_word_of_a_message(base: Store) -> None:
    assert holders(base, "cannot identify feather scan <_io.BytesIO object at 0x7fa4b2e4e3e0>") == [38, 39]


def test_the_class_of_a_model_is_no_word_of_a_message(base: Store) -> None:
    assert holders(base, "FalconLMHeadModel lets no pigeon roost in parallel") == [40, 41]
