"""Nothing but a number of a configured repository comes out of an address, whatever it is dressed as."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.errors import AddressError
from app.knowledge.issue.address import NUMBER_MAX, IssueAddress, parse_issue_address
from tests.samples import REPO

OTHER = "acme/engine"
REPOS = (REPO, OTHER)
HOSTS = (
    "github.com",
    "www.github.com",
    "api.github.com/repos",
    "GITHUB.com",
    "evil.example",
    "127.0.0.1:8000",
    "[::1]",
    "github.com.evil.example",
)
PARTS = (
    *HOSTS,
    *REPOS,
    "https://",
    "http://",
    "file://",
    "//",
    "/",
    "@",
    ":",
    "#",
    "?",
    "\\",
    "%2f",
    "%2e%2e",
    "..",
    "issues",
    "pull",
    "7",
    " ",
    "\n",
    "\t",
    "evil/other",
)


@pytest.mark.parametrize(
    "host",
    [
        # a name or password before the host
        "github.com@evil.example",
        "evil.example@github.com",
        "user:word@github.com",
        "github.com:443@evil.example",
        # ports, GitHub's own too: they are never pasted
        "github.com:443",
        "github.com:22",
        "github.com:@evil.example",
        "api.github.com:8443/repos",
        # letters of other scripts, marks that a browser takes for others, encoded names
        "gıthub.com",
        "gİthub.com",
        "githuƅ.com",
        "ｇｉｔｈｕｂ.com",
        "github。com",
        "github．com",
        "xn--gthub-n4a.com",
        "github.com\u200b",
        "github%2ecom",
        "github.com\u00ad",
        # other hosts
        "evil.example",
        "github.com.evil.example",
        "evilgithub.com",
        "gist.github.com",
        "raw.github.com",
        "github.com.",
        "evil.example/github.com",
        "localhost",
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "[::1]",
        "[::ffff:169.254.169.254]",
        "169.254.169.254",
        "api.github.com",
        "github.com/repos",
        # slashes that are none
        "github.com\\evil.example",
        "github.com%2f",
        "evil.example%2f@github.com",
        "github.com#@evil.example",
        "github.com?x=",
        "evil.example?github.com",
    ],
)
@pytest.mark.parametrize("scheme", ["https://", "http://", "//", ""])
def test_no_host_but_github_s_is_taken(host: str, scheme: str) -> None:
    with pytest.raises(AddressError, match="not the address"):
        parse_issue_address(f"{scheme}{host}/{REPO}/issues/7", REPOS)


@pytest.mark.parametrize(
    "scheme",
    [
        "file://",
        "ftp://",
        "gopher://",
        "javascript:",
        "data:",
        "https:/",
        "https:",
        "https:\\\\",
        "url:https://",
        "\x00https://",
    ],
)
def test_no_scheme_but_http_is_taken(scheme: str) -> None:
    with pytest.raises(AddressError, match="not the address"):
        parse_issue_address(f"{scheme}github.com/{REPO}/issues/7", REPOS)


@pytest.mark.parametrize(
    "path",
    [
        f"{REPO}/../other/issues/7",
        f"{REPO}%2fissues%2f7",
        f"{REPO.replace('/', '%2f')}/issues/7",
        f"{REPO}/issues/%37",
        f"{REPO}//issues/7",
        f"/{REPO}/issues/7",
        f"{REPO}/issues/7%00",
        f"{REPO}/issues/7@evil.example",
        f"{REPO}/issues/7\\..\\8",
        f"{REPO}/issues/-7",
        f"{REPO}/issues/7.json",
        f"{REPO}/issues/７",
        f"{REPO}/issues/0x7",
        f"{REPO}/issues/1e1",
        f"{REPO}/issues/7\n/evil",
        f"{REPO}\n/issues/7",
        "../issues/7",
        f"{REPO};x/issues/7",
    ],
)
def test_a_path_that_would_have_to_be_decoded_is_refused(path: str) -> None:
    with pytest.raises(AddressError):
        parse_issue_address(f"https://github.com/{path}", REPOS)


@pytest.mark.parametrize(
    "name",
    [
        "evil/other",
        "a/..",
        "vllm-project/vllm.git",
        "vllm-project/vllm-ascend",
        "vllm-project/.",
        "-/vllm",
        "vllm-project/..",
        "evil/vllm",
    ],
)
@pytest.mark.parametrize(
    "form", ["https://github.com/{}/issues/7", "https://api.github.com/repos/{}/issues/7", "{}#7"]
)
def test_a_repository_that_is_not_configured_is_refused(name: str, form: str) -> None:
    with pytest.raises(AddressError, match="Only issues of"):
        parse_issue_address(form.format(name), REPOS)


@pytest.mark.parametrize(
    "rest",
    [
        "#issuecomment-1",
        "?next=https://evil.example/",
        "/../../../../evil",
        "#@evil.example",
        "/%2e%2e/%2e%2e",
        "?a=\\",
    ],
)
def test_what_stands_behind_the_number_goes_nowhere(rest: str) -> None:
    assert parse_issue_address(f"https://github.com/{REPO}/issues/7{rest}", REPOS) == IssueAddress(REPO, 7)


@given(
    st.one_of(
        st.lists(st.sampled_from(PARTS), max_size=9).map("".join), st.text(st.characters(), max_size=60)
    )
)
@example("https://github.com/vllm-project/vllm/issues/7")
def test_every_text_is_an_issue_of_ours_or_a_refusal_without_its_words(text: str) -> None:
    output, found = "", IssueAddress(REPO, 1)
    try:
        found = parse_issue_address(text, REPOS)
    except AddressError as error:
        output = error.message
    assert "evil" not in output
    assert found.repo in REPOS
    assert 0 < found.number <= NUMBER_MAX
