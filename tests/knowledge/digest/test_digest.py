"""The digest of a week: each number against SQL written for it here, what to do, and the same bytes each time."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app.errors import NotFoundError, WeekError
from app.knowledge.digest.digest import Digest, archive, digest_markdown, headline, make_digest
from app.knowledge.digest.feed import feed_entries
from app.knowledge.digest.week import WeekIssues, newest_whole_week, whole_week
from app.knowledge.iso_week import IsoWeek
from app.knowledge.markdown import escape
from app.store.derived.weeks import OpenedSpan
from app.store.github.issues import find_repository
from app.store.github.sync_state import fresh_as_of
from app.store.session import Store
from ingest.importer import import_paths
from tests.knowledge.made_clusters import facts_of, put, report
from tests.knowledge.made_week import GROWING, MONDAY, OLD_ONE, PAIR, REPO, SECRET, WEEK, put_week
from tests.samples import an_issue

PARTS = {
    "[issues]": "repo_id = :repo AND NOT is_pull_request AND gone_at IS NULL",
    "[opened]": "[issues] AND created_at >= :start AND created_at < :end",
    "[reports]": "SELECT number FROM reading WHERE repo_id = :repo AND failure_kind <> 'none' "
    "AND number IN (SELECT number FROM issue WHERE [opened])",
}
"""Parts of the questions below, by the sign that stands for them."""
OPENED, REPORTS = "SELECT count(*) FROM issue WHERE [opened]", "[reports]"


class Sql:
    """Questions in plain SQL, written apart from those of the archive."""

    def __init__(self, store: Store, repo_id: int, week: IsoWeek) -> None:
        self.store, self.repo_id, self.week = store, repo_id, week

    def rows(self, query: str, *, back: int = 0, weeks: int = 1, **values: Any) -> list[Any]:
        begin = self.week.shifted(-back)
        found = {
            "repo": self.repo_id,
            "start": self._moment(begin.start),
            "end": self._moment(begin.shifted(weeks).start),
        }
        for sign in ("[reports]", "[opened]", "[issues]"):
            query = query.replace(sign, PARTS[sign])
        with self.store.engine.connect() as connection:
            return list(connection.execute(text(query), found | values).all())

    def _moment(self, moment: Any) -> Any:
        return (
            moment
            if self.store.engine.dialect.name == "postgresql"
            else moment.strftime("%Y-%m-%d %H:%M:%S.%f")
        )

    def one(self, query: str, **values: Any) -> Any:
        return self.rows(query, **values)[0][0]

    def numbers(self, query: str, **values: Any) -> list[int]:
        return sorted(row[0] for row in self.rows(query, **values))


def check_numbers(digest: Digest, sql: Sql) -> None:
    """Every count of a digest, asked again."""
    reports = sql.numbers(REPORTS)
    assert digest.issues == sql.one(OPENED)
    assert digest.failures == len(reports)
    assert digest.issues_before == sql.one(OPENED, back=1)
    assert digest.failures_before == len(sql.numbers(REPORTS, back=1))
    assert digest.data.undated == sql.one("SELECT count(*) FROM issue WHERE [issues] AND created_at IS NULL")
    for place, week in enumerate(reversed(digest.weeks)):
        assert week.issues == sql.one(OPENED, back=place), week
        assert week.failures == len(sql.numbers(REPORTS, back=place)), week
    check_facts(digest, sql)
    check_clusters(digest, sql, reports)
    check_changes(digest, sql, reports)


def check_facts(digest: Digest, sql: Sql) -> None:
    kinds = sql.rows(
        "SELECT failure_kind, count(*) FROM reading WHERE repo_id = :repo AND number IN ([reports]) GROUP BY 1"
    )
    assert {one.value: one.reports for one in digest.kinds} == dict(map(tuple, kinds))
    assert sum(one.reports for one in digest.kinds) == digest.failures
    values = (
        "SELECT field, value_key, count(DISTINCT number) FROM fact WHERE repo_id = :repo AND field = :field "
        "AND number IN ([reports]) GROUP BY 1, 2"
    )
    gpus = {key: count for _, key, count in sql.rows(values, field="gpus")}
    assert {one.value.lower(): one.reports for one in digest.hardware} == gpus
    named = "SELECT count(DISTINCT number) FROM fact WHERE repo_id = :repo AND field = 'gpus' AND number IN ([reports])"
    assert digest.without_hardware == digest.failures - sql.one(named)


def check_clusters(digest: Digest, sql: Sql, reports: list[int]) -> None:
    of_week = "SELECT cluster_id, number FROM cluster_member WHERE repo_id = :repo AND number IN ([reports])"
    clusters: dict[str, list[int]] = {}
    for key, number in sql.rows(of_week):
        clusters.setdefault(key, []).append(number)
    size = "SELECT count(*) FROM cluster_member WHERE repo_id = :repo AND cluster_id = :key"
    sizes = {key: sql.one(size, key=key) for key in clusters}
    assert sorted(number for numbers in clusters.values() for number in numbers) == reports
    assert digest.failures_total == len(clusters)
    assert digest.repeated_total == sum(count > 1 for count in sizes.values())
    for item in digest.clusters:
        assert list(item.numbers) == sorted(clusters[item.id])
        assert (item.reports, item.size) == (len(clusters[item.id]), sizes[item.id])
    assert [(-one.reports, -one.size) for one in digest.clusters] == sorted(
        (-one.reports, -one.size) for one in digest.clusters
    )
    before = Counter(key for key, _ in sql.rows(of_week, back=8, weeks=8))
    if digest.weeks_before == 8:
        check_growth(digest, {key: len(numbers) for key, numbers in clusters.items()}, before)
    check_unremedied(digest, sql, clusters)


def check_growth(digest: Digest, now: dict[str, int], before: Counter[str]) -> None:
    assert {one.id for one in digest.growing} == {key for key in now if now[key] > 3 * before[key] / 8 + 3}
    for one in digest.growing:
        assert (one.reports, one.before) == (now[one.id], before[one.id])


def check_unremedied(digest: Digest, sql: Sql, clusters: dict[str, list[int]]) -> None:
    hits = "SELECT number, 1 + comments + reactions FROM issue WHERE repo_id = :repo"
    by_issue = dict(map(tuple, sql.rows(hits)))
    helping = sql.numbers("SELECT number FROM reading WHERE repo_id = :repo AND has_remedy")
    members = "SELECT number FROM cluster_member WHERE repo_id = :repo AND cluster_id = :key"
    for item in digest.unremedied:
        assert item.cluster is not None
        assert item.hits == sum(by_issue[number] for number in clusters[item.cluster])
        assert not set(sql.numbers(members, key=item.cluster)) & set(helping)
    assert all(one.hits >= other.hits for one, other in pairwise(digest.unremedied))


def check_changes(digest: Digest, sql: Sql, reports: list[int]) -> None:
    found = "SELECT DISTINCT number FROM fact WHERE repo_id = :repo AND number IN ([reports]) AND field = :field AND value <> ''"
    range_told = {
        number
        for name in ("first_failing", "last_working", "culprit")
        for number in sql.numbers(found, field=f"regression.{name}")
    }
    assert {one.number for group in digest.regressions for one in group.items} >= range_told
    for item in digest.remedies:
        assert item.remedy.number in sql.numbers(
            "SELECT number FROM reading WHERE repo_id = :repo AND has_remedy"
        )
        assert item.told_in == "comment" or item.remedy.number in reports
    merges = (
        "SELECT number FROM pull_request WHERE repo_id = :repo AND merged_at >= :start AND merged_at < :end"
    )
    released = (
        "SELECT DISTINCT p.number FROM release_pull p JOIN release r ON r.repo_id = p.repo_id AND r.tag = p.tag "
        "WHERE r.repo_id = :repo AND r.published_at >= :start AND r.published_at < :end AND NOT r.is_prerelease"
    )
    mended = {"merged": set(sql.numbers(merges)), "released": set(sql.numbers(released))}
    for fix in digest.fixed:
        assert int((fix.fix.pr or "").removeprefix("#")) in mended[fix.how]
    fixing = (
        "SELECT DISTINCT l.target_number FROM link l JOIN pull_request p ON p.repo_id = l.repo_id AND p.number = l.number "
        "JOIN reading r ON r.repo_id = l.repo_id AND r.number = l.target_number WHERE l.repo_id = :repo "
        "AND l.kind = 'fixes' AND r.failure_kind <> 'none' AND p.merged_at >= :start AND p.merged_at < :end "
        "AND NOT EXISTS (SELECT 1 FROM link b WHERE b.repo_id = l.repo_id AND b.target_number = p.number AND b.kind = 'reverts')"
    )
    expected = set(sql.numbers(fixing))
    assert expected <= {fix.number for fix in digest.fixed} or digest.fixed_total > len(digest.fixed)


@pytest.fixture
def repo_id(store: Store) -> int:
    return put_week(store)


@pytest.fixture
def digest(store: Store, repo_id: int) -> Digest:
    del repo_id
    return make_digest(store, REPO, IsoWeek.parse(WEEK))


def test_every_count_agrees_with_sql(store: Store, repo_id: int, digest: Digest) -> None:
    check_numbers(digest, Sql(store, repo_id, IsoWeek.parse(WEEK)))


def test_the_counts_of_the_week_are_those_of_its_reports(digest: Digest) -> None:
    assert (digest.issues, digest.failures, digest.failures_before) == (15, 14, 2)
    assert (digest.week, digest.days, digest.previous, digest.next) == (
        WEEK,
        "6 – 12 April 2026",
        "2026-W14",
        "2026-W16",
    )
    assert [(one.value, one.reports) for one in digest.kinds] == [
        ("crash", 11),
        ("hang", 1),
        ("oom", 1),
        ("slowdown", 1),
    ]
    assert [(one.value, one.reports) for one in digest.hardware] == [("H100", 6)]
    assert digest.without_hardware == 8


def test_failures_are_told_by_cluster_the_most_reported_first(digest: Digest) -> None:
    assert [(one.id, one.reports, one.size, one.is_new) for one in digest.clusters] == [
        (GROWING, 5, 6, False),
        (PAIR, 2, 2, True),
        (OLD_ONE, 1, 2, False),
    ]
    assert digest.clusters[1].remedy is not None
    assert digest.clusters[1].remedy.action == "--enforce-eager"
    assert digest.clusters[0].remedy is None
    assert (digest.failures_total, digest.repeated_total) == (9, 3)


def test_the_growing_cluster_is_named(digest: Digest) -> None:
    assert [(one.id, one.reports, one.before) for one in digest.growing] == [(GROWING, 5, 1)]
    assert digest.headline == (
        "14 new failures among 15 new issues, 12 more than the week before; the most reported, with 5 reports, is "
        f"“ValueError | {GROWING}”, 1 failure grows, 1 fix came out."
    )


def test_regressions_are_told_by_the_version_in_which_they_began(digest: Digest) -> None:
    assert [(group.version, [one.number for one in group.items]) for group in digest.regressions] == [
        ("0.9.0", [230, 231]),
        (None, [232]),
    ]


def test_fixed_is_what_a_release_or_a_merge_of_the_week_mends(digest: Digest) -> None:
    assert [(one.number, one.how, one.fix.pr, one.fix.released_in) for one in digest.fixed] == [
        (300, "released", "#400", "0.9.1"),
        (301, "merged", "#401", None),
    ]
    assert digest.fixed[0].merged_at == MONDAY - timedelta(weeks=2) + timedelta(hours=1)
    assert (digest.data.newest_release, digest.fixed_total) == ("0.9.1", 2)


def test_a_fix_merged_in_one_week_and_released_in_another_stands_in_both(store: Store, repo_id: int) -> None:
    del repo_id
    merged = make_digest(store, REPO, IsoWeek.parse("2026-W13")).fixed
    later = make_digest(store, REPO, IsoWeek.parse("2026-W17")).fixed

    assert [(one.number, one.how, one.fix.released_in) for one in merged] == [(300, "merged", "0.9.1")]
    assert [(one.number, one.how) for one in later] == [(304, "released")]


def test_remedies_are_those_told_in_the_week_that_help(digest: Digest) -> None:
    assert [(one.remedy.action, one.remedy.number, one.told_in) for one in digest.remedies] == [
        ("VLLM_USE_900=0", 105, "comment"),
        ("--enforce-eager", 220, "issue"),
    ]


def test_remedies_and_advice_stand_beside_the_failure_they_are_for(digest: Digest) -> None:
    written = digest_markdown(digest)
    titles = {line.number: line.title for line in digest.advice}
    (remedy,) = (one for one in digest.remedies if one.remedy.number == 220)

    assert titles[220] == remedy.title != ""
    assert all(titles.values())
    for line in written.splitlines():
        if "`--enforce-eager`" in line and ("reported to work" in line or "the reporter" in line):
            assert f"[#220](https://github.com/{REPO}/issues/220) {escape(remedy.title)}" in line


def test_the_headline_names_a_failure_without_an_error_by_its_title(digest: Digest) -> None:
    most = digest.clusters[0].model_copy(update={"text": "", "title": "Output differs", "canonical": 7})
    week = WeekIssues(IsoWeek.parse(WEEK), (), (7, 8), (7, 8), {}, (most,))

    assert "is “#7 Output differs”" in headline(week, 0, [], None)


def test_most_hit_is_what_nothing_is_said_to_help_against(digest: Digest) -> None:
    assert [(one.number, one.hits) for one in digest.unremedied[:2]] == [(204, 15), (240, 14)]
    assert 220 not in {one.number for one in digest.unremedied}
    assert digest.unremedied_total == 8
    assert SECRET not in digest.model_dump_json()


def test_closed_but_alive_is_what_is_reported_again(digest: Digest) -> None:
    (item,) = digest.alive
    assert (item.id, item.canonical, item.numbers, item.alive.reports_since) == (OLD_ONE, 210, (211,), 1)


def test_what_to_do_is_five_lines_that_follow_from_facts(digest: Digest) -> None:
    assert [(line.kind, line.number, line.whom, line.action, line.command) for line in digest.advice] == [
        ("upgrade", 300, "Whoever meets it", "upgrade to 0.9.1: #400 is in it.", ""),
        ("remedy", 220, "On H100 in vLLM 0.9.0", "this is reported to work:", "--enforce-eager"),
        ("stay", 230, "In vLLM 0.9.0", "0.8.5 is reported to work, 0.9.0 fails.", ""),
        ("stay", 232, "Whoever meets it", "0.8.4 is reported to work, a later one fails.", ""),
        ("watch", 204, "On H100", "watch this: 5 reports this week, 1 in the eight weeks before.", ""),
    ]


def test_estimated_and_missing_dates_are_told(digest: Digest) -> None:
    assert (digest.data.estimated, digest.data.undated, digest.data.is_over) == (1, 1, True)
    written = digest_markdown(digest)
    assert "\nThe dates of 1 of the 15 issues are estimates" in written
    assert "\n1 stored issue has no date and is in no week.\n" in written


def test_a_running_week_is_told_as_unfinished(store: Store, repo_id: int) -> None:
    del repo_id
    digest = make_digest(store, REPO, IsoWeek.parse("2026-W16"))

    assert (digest.issues, digest.data.is_over, digest.next) == (1, False, None)
    assert "the week is not complete." in digest_markdown(digest)
    assert digest.headline.startswith("1 new failure among 1 new issue")
    assert "week before" not in digest.headline


def test_the_same_week_and_data_give_the_same_bytes(store: Store, repo_id: int) -> None:
    del repo_id
    week = IsoWeek.parse(WEEK)
    one, other = make_digest(store, REPO, week), make_digest(store, REPO, week)

    assert one.model_dump_json() == other.model_dump_json()
    assert digest_markdown(one) == digest_markdown(other)
    assert feed_entries(store, REPO) == feed_entries(store, REPO)


def test_both_engines_give_the_same_bytes(sqlite_store: Store, postgresql_store: Store) -> None:
    found = []
    for opened in (sqlite_store, postgresql_store):
        put_week(opened)
        digest = make_digest(opened, REPO, IsoWeek.parse(WEEK))
        found.append((digest.model_dump_json(), digest_markdown(digest), feed_entries(opened, REPO)))

    assert found[0] == found[1]


def test_a_week_without_issues_is_told_as_empty(store: Store, repo_id: int) -> None:
    digest = make_digest(store, REPO, IsoWeek.parse("2026-W40"))

    check_numbers(digest, Sql(store, repo_id, IsoWeek.parse("2026-W40")))
    assert digest.headline == "No issue was opened this week."
    assert (digest.issues, digest.clusters, digest.advice, digest.kinds, digest.previous) == (
        0,
        (),
        (),
        (),
        "2026-W16",
    )
    assert "The stored issues give no advice." in digest_markdown(digest)


def test_a_week_of_a_base_without_releases_says_that_fixes_cannot_be_known(
    store: Store, repo_id: int
) -> None:
    with store.unit_of_work() as session:
        for table in ("release_pull", "release"):
            session.connection().execute(text(f"DELETE FROM {table}"))
        session.connection().execute(text("DELETE FROM link WHERE kind IN ('fixes', 'fixed_by')"))
        session.connection().execute(text("DELETE FROM fact WHERE field = 'fix'"))
    found = make_digest(store, REPO, IsoWeek.parse(WEEK))

    assert (found.data.are_fixes_known, found.fixed_total) == (False, 0)
    assert "Fixes cannot be known here yet" in digest_markdown(found)


def test_nothing_stored_has_no_week(store: Store) -> None:
    with pytest.raises(NotFoundError, match="stored yet"):
        make_digest(store, REPO, IsoWeek.parse(WEEK))
    assert archive(store, REPO).weeks == ()
    assert newest_whole_week(store, REPO) is None
    assert feed_entries(store, REPO) == ()


def test_a_young_base_tells_no_growth_and_says_why(store: Store) -> None:
    put(store, *((report(n, created_at=MONDAY), facts_of(n)) for n in range(1, 9)))
    digest = make_digest(store, REPO, IsoWeek.parse(WEEK))

    assert (digest.weeks_before, digest.growing) == (0, ())
    assert "\nToo few weeks to say: the base has 0 of the 8 weeks before" in digest_markdown(digest)


def test_the_archive_lists_the_weeks_with_issues_the_newest_first(store: Store, repo_id: int) -> None:
    page = archive(store, REPO)

    assert [one.week for one in page.weeks] == [f"2026-W{n:02}" for n in range(16, 4, -1)]
    assert (page.weeks[1].issues, page.weeks[1].failures, page.undated) == (15, 14, 1)
    sql = Sql(store, repo_id, IsoWeek.parse(WEEK))
    dated = sql.one("SELECT count(*) FROM issue WHERE [issues] AND created_at IS NOT NULL")
    assert sum(one.issues for one in page.weeks) == dated


def test_markdown_has_all_lists_as_tables(digest: Digest) -> None:
    written = digest_markdown(digest)

    for row in (
        "| New issues | 15 | 3 |",
        "| 2026-W15 | 14 | 15 |",
        "| out of memory | 1 |",
        "| H100 | 6 |",
        "| none named | 8 |",
        rf"| `ValueError \| {GROWING}` | 5 | 0.125 | #200, #201, #202, #203, #204 |",
        "| `0.9.0` | `0.8.5` | [#230](",
        "| unknown | `0.8.4` | [#232](",
        "| Fixed by #400, in 0.9.1 | released |",
        "| 14 | 9 | 4 |",
        "| `VLLM_USE_900=0` | works |",
    ):
        assert row in written, row
    assert all(f"#{number}" in written for one in digest.clusters for number in one.numbers)
    assert "more reports than three times the weekly mean of the 8 weeks before, plus three." in written
    assert "<script>" not in written
    assert written.endswith(".\n")


def test_the_feed_tells_weeks_new_failures_and_fixes_by_the_time_of_the_data(
    store: Store, repo_id: int
) -> None:
    del repo_id
    entries = feed_entries(store, REPO)

    assert [one.updated for one in entries] == sorted((one.updated for one in entries), reverse=True)
    assert len({one.key for one in entries}) == len(entries)
    found = {one.key: one for one in entries}
    assert found["digest/2026-W15"].title == "Week 2026-W15: 14 new failures among 15 new issues"
    assert found["digest/2026-W15"].updated == MONDAY + timedelta(weeks=1)
    assert "digest/2026-W16" not in found
    assert found[f"cluster/{PAIR}"].summary == "2 reports so far: #220, #221."
    assert f"cluster/{OLD_ONE}" not in found
    assert found[f"growing/2026-W15/{GROWING}"].path == f"/signatures/{GROWING}"
    assert found["fixed/300/0.9.1"].summary.startswith("Fixed in 0.9.1 by #400.")
    assert {one.kind for one in entries} == {"digest", "cluster", "growing", "fixed"}


def test_a_week_ends_with_a_sync_that_saw_its_end(store: Store) -> None:
    put(store, (an_issue(1, created_at=MONDAY, title="[Bug]: no room"), facts_of(1)))
    with store.reading() as session:
        assert fresh_as_of(session, 1) is None
    assert make_digest(store, REPO, IsoWeek.parse(WEEK)).data.until == MONDAY


@pytest.mark.parametrize(
    ("first", "last", "as_of", "week"),
    [
        ("2026-01-01", "2026-04-08", None, "2026-W14"),
        ("2026-01-01", "2026-04-08", "2026-04-09", "2026-W14"),
        ("2026-01-01", "2026-04-08", "2026-04-13", "2026-W15"),
        ("2026-04-07", "2026-04-08", None, "2026-W15"),
        (None, None, "2026-04-13", None),
    ],
)
def test_the_newest_whole_week_is_the_last_that_is_stored_to_its_end(
    first: str | None, last: str | None, as_of: str | None, week: str | None
) -> None:
    def moment(text: str | None) -> datetime | None:
        return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None

    found = whole_week(OpenedSpan(moment(first), moment(last), 0), moment(as_of))

    assert (str(found) if found else None) == week


# ---- the corpus


def corpus_rows(shared: Path, week: IsoWeek) -> list[dict[str, Any]]:
    """The issues of the eight weeks before, of the week and of the one after, the pull requests that close them, and all releases."""
    begin, end = f"{week.shifted(-8).start:%Y-%m-%d}", f"{week.shifted(1).end:%Y-%m-%d}"
    with gzip.open(shared / "corpus" / "issues.jsonl.gz", "rt", encoding="utf-8") as lines:
        issues = {row["number"]: row for row in map(json.loads, lines) if begin <= row["created_at"] < end}
    pulls: dict[int, dict[str, Any]] = {}
    for line in (shared / "corpus" / "linked_prs.jsonl").read_text(encoding="utf-8").splitlines():
        link = json.loads(line)
        closed_at = issues.get(link["issue"], {}).get("closed_at")
        if link["link"] == "closes_keyword" and closed_at and link["pr"] not in issues:
            pulls[link["pr"]] = {
                "number": link["pr"],
                "title": link["pr_title"],
                "body": f"Fixes #{link['issue']}",
                "state": "closed",
                "created_at": closed_at,
                "updated_at": closed_at,
                "closed_at": closed_at,
                "merged_at": closed_at,
                "pull_request": {"merged_at": closed_at},
                "html_url": f"https://github.com/{REPO}/pull/{link['pr']}",
            }
    releases = json.loads((shared / "corpus" / "releases.json").read_text(encoding="utf-8"))
    return [*issues.values(), *pulls.values(), *releases]


@pytest.mark.long
def test_a_week_of_the_corpus_agrees_with_sql(sqlite_store: Store, shared: Path, tmp_path: Path) -> None:
    week = IsoWeek.parse("2026-W15")
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, corpus_rows(shared, week))), encoding="utf-8")
    import_paths(sqlite_store, [path], REPO)
    with sqlite_store.reading() as session:
        repo_id = find_repository(session, REPO) or 0

    for chosen in (week, week.shifted(1)):
        digest = make_digest(sqlite_store, REPO, chosen)
        check_numbers(digest, Sql(sqlite_store, repo_id, chosen))
        assert digest.failures > 50
        assert digest.fixed
    assert make_digest(sqlite_store, REPO, week).data.estimated > 100


def test_a_week_that_has_not_begun_is_refused(store: Store) -> None:
    put_week(store)
    with pytest.raises(WeekError, match="has not begun; the newest week is 20"):
        make_digest(store, REPO, IsoWeek.parse("2199-W10"))
