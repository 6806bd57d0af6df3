"""What belongs to an issue, as its page shows it."""

from __future__ import annotations

from app.knowledge.issue_graph import ALIKE_MAX, issue_graph
from app.knowledge.report_shapes import Graph
from app.knowledge.stored_issue import load_issue
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import LATE, REPO, a_comment, a_pull, a_release, an_issue, fenced, marlin_log


def _graph(store: Store) -> Graph:
    with store.reading() as session:
        return issue_graph(session, load_issue(session, REPO, 1))


def test_pull_requests_have_state_and_release(store: Store, keep: Keep) -> None:
    keep(
        an_issue(1, body="This regression was introduced by #1010.\n\nAnother one: #2002."), an_issue(2002, title="[Bug]: another"),
        a_pull(1010, title="Change the default", merged_at=LATE), a_pull(11, title="Undo", body="Fixes #1"),
        a_comment(7, 1, "Same as #3."), a_release("v0.9.2", 1010),
    )  # fmt: skip
    graph = _graph(store)
    told = {graph.other_end(edge).number: (edge.kind, graph.other_end(edge).state) for edge in graph.edges}

    assert graph.nodes[0].number == 1
    assert told[11] == ("fixes", "open")
    assert told[1010][1] == "merged"
    assert told[2002] == ("mentions", "open")
    assert next(node for node in graph.nodes if node.number == 1010).released_in == "0.9.2"


def test_only_a_few_similar_issues_are_shown(store: Store, keep: Keep) -> None:
    keep(*(an_issue(n, title="[Bug]: marlin refuses the weight", body=fenced("x", marlin_log())) for n in range(1, ALIKE_MAX + 4)))
    alike = [edge for edge in _graph(store).edges if edge.basis == "likeness"]

    assert len(alike) == ALIKE_MAX
