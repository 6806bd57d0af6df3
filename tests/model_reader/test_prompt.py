from app.extract.text.document import CommentText, IssueText
from app.model_reader.prompt import estimate_tokens, make_prompt

KEY = "ghp_" + "a1B2" * 9


def an_issue(body: str, *comments: CommentText) -> IssueText:
    return IssueText(7, "Server dies at start", body, user="ann", comments=comments)


def test_each_line_is_numbered_and_knows_its_place() -> None:
    body = "It dies.\n\nWith --enforce-eager it runs."
    prompt = make_prompt(
        an_issue(body, CommentText("Same here.", 5, "bob", "MEMBER", "2026-03-04T10:00:00Z"))
    )
    assert [line.text for line in prompt.lines] == [
        "Server dies at start",
        "It dies.",
        "With --enforce-eager it runs.",
        "Same here.",
    ]
    third = prompt.lines[2]
    assert body[third.start : third.end] == third.text
    assert "3| With --enforce-eager it runs." in prompt.content
    assert "[comment 1 by a maintainer, 2026-03-04]" in prompt.content


def test_what_github_does_not_display_is_not_sent() -> None:
    content = make_prompt(an_issue("before <!-- hidden words --> after\u200b!")).content
    assert "hidden" not in content
    assert "after !" in content


def test_secrets_are_masked() -> None:
    assert KEY not in make_prompt(an_issue(f"HF_TOKEN={KEY}")).content


def test_dumps_of_the_environment_are_cut_but_not_what_tells() -> None:
    body = "OS: Ubuntu 22.04\nPyTorch version: 2.5.1+cu124\nVulnerability Mds: Not affected\nL1d cache: 1 MiB"
    content = make_prompt(an_issue(body)).content
    assert "PyTorch version: 2.5.1" in content
    assert "Ubuntu" not in content
    assert "Mds" not in content


def test_long_output_keeps_its_ends_and_its_errors() -> None:
    lines = [f"INFO 03-04 loading shard {n}" for n in range(200)]
    lines[100] = "ERROR 03-04 ValueError: no blocks"
    content = make_prompt(an_issue("```\n" + "\n".join(lines) + "\n```")).content
    assert "shard 0" in content
    assert "shard 199" in content
    assert "ValueError: no blocks" in content
    assert "shard 50" not in content


def test_a_text_of_any_length_fits() -> None:
    talk = "\n".join(f"sentence number {n} about nothing" for n in range(5_000))
    prompt = make_prompt(an_issue(talk, CommentText("The fix: --enforce-eager", 1)), 8_000)
    assert len(prompt.content) < 9_000
    assert "--enforce-eager" in prompt.content
    assert "number 0 " in prompt.content
    assert "number 4999 " in prompt.content


def test_a_line_without_end_is_numbered_in_pieces() -> None:
    prompt = make_prompt(an_issue("It fails with an error. " * 40))
    assert all(len(line.text) <= 300 for line in prompt.lines)
    assert len(prompt.lines) > 3


def test_the_digest_changes_with_the_text_alone() -> None:
    one, same, other = (make_prompt(an_issue(body)).digest for body in ("a", "a", "b"))
    assert one == same
    assert one != other


def test_a_chinese_sign_counts_as_a_token() -> None:
    assert estimate_tokens("显存不足" * 100) > 390
