"""Read stored issues with a language model: send prompts, store the replies, merge them into the facts.

Replies are stored before they are used, so a killed run can be resumed and no text is sent twice. As many
requests as allowed run at a time; between them replies are stored and facts derived in short units of work,
so syncs and searches never wait for the model.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice

from app.errors import NotFoundError, ReaderError
from app.extract.facts import Frozen
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText
from app.knowledge.indexing.batches import derive_changed
from app.knowledge.indexing.derive import find_sources, issue_text_of
from app.model_reader.check import check_reply
from app.model_reader.client import REPLY_TOKENS_MAX, Answer, ReaderClient
from app.model_reader.connection import ServedModel
from app.model_reader.prompt import CHARS_MAX, CHARS_PER_TOKEN, Prompt, estimate_tokens, make_prompt
from app.model_reader.reply import instructions, parse_reply, prompt_version
from app.store.derived.model_outputs import (
    ModelReply,
    ReplyOutcome,
    asked_digests,
    note_unchanged,
    save_replies,
    tokens_today,
    unmerged_numbers,
    unread_numbers,
)
from app.store.github.issues import find_repository
from app.store.records import Progress, Report, quiet
from app.store.session import Store

BATCH = 50
"""Issues loaded at once, and complete replies after which facts are derived again."""
CHARS_MIN = 4_000
"""Lower limit when halving a prompt that is too long."""
FAULTS_MAX = 5
"""Consecutive issues without a usable reply after which a run stops."""

_OUTCOMES: dict[str, ReplyOutcome] = {"complete": "complete", "cut": "cut", "failed": "failed"}


@dataclass(slots=True)
class ReadResult:
    """The result of a run. `stopped`: why it ended early, or empty."""

    model: str = ""
    asked: int = 0
    unchanged: int = 0
    left: int = 0
    tokens: int = 0
    kept: int = 0
    dropped: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    stopped: str = ""

    @property
    def is_news(self) -> bool:
        """True if anything was asked or went wrong."""
        return bool(self.asked or self.stopped)

    @property
    def words(self) -> str:
        """A one-line summary of the run."""
        if not self.is_news:
            return f"{self.model} has nothing to read here: all that is stored and was asked for is read"
        rest = ", ".join(f"{count:,} {name}" for name, count in sorted(self.outcomes.items()))
        words = f"{self.model} read {self.asked:,} issues ({rest or 'none'}), {self.tokens:,} tokens; "
        words += f"{self.kept:,} values proven, {self.dropped:,} dropped"
        words += f"; {self.unchanged:,} had been read" if self.unchanged else ""
        return words + (f"; stopped: {self.stopped}; {self.left:,} wait" if self.stopped else "")


class ReadingPlan(Frozen):
    """What a run would send: number of issues, and estimated prompt tokens."""

    model: str
    issues: int
    tokens: int


@dataclass(frozen=True, slots=True)
class _Task:
    issue: IssueText
    prompt: Prompt
    chars_max: int


def plan_reading(
    store: Store, repo: str, client: ReaderClient, *, numbers: Sequence[int] = (), limit: int | None = None
) -> ReadingPlan:
    """Return what `read_issues` would send; the server is only asked for its model."""
    run = _ReadingRun(store, repo, client, numbers, limit)
    tasks = [task.prompt.tokens for task in run.tasks()]
    return ReadingPlan(model=run.model.identity, issues=len(tasks), tokens=sum(tasks))


def read_issues(
    store: Store,
    repo: str,
    client: ReaderClient,
    *,
    numbers: Sequence[int] = (),
    limit: int | None = None,
    tokens_per_day: int | None = None,
    parallel: int = 1,
    report: Report = quiet,
) -> ReadResult:
    """Read the issues without a stored reply, newest first.

    Args:
        tokens_per_day: limit for all runs of a day, prompts and replies together.

    Raises:
        NotFoundError: nothing of the repository is stored.
        ReaderError: the server failed and answered no issue.
    """
    run = _ReadingRun(store, repo, client, numbers, limit)
    tasks, fresh = run.tasks(), run.unmerged
    with ThreadPoolExecutor(parallel, thread_name_prefix="reader") as threads:
        while not run.result.stopped:
            part = run.affordable(islice(tasks, parallel), tokens_per_day)
            if not part:
                break
            fresh += run.store_replies(threads.map(run.ask, part))
            report(Progress("reading", run.result.asked, len(run.numbers) - run.result.unchanged))
            if len(fresh) >= BATCH:
                derive_changed(store, repo, fresh)
                fresh = []
    derive_changed(store, repo, fresh)
    return run.finish()


class _ReadingRun:
    """One run over one repository."""

    def __init__(
        self, store: Store, repo: str, client: ReaderClient, numbers: Sequence[int], limit: int | None
    ) -> None:
        self._store = store
        self._repo = repo
        self._client = client
        self.model = client.served_model()
        self.result = ReadResult(model=self.model.identity)
        with store.reading() as session:
            self._repo_id = find_repository(session, repo)
            if not self._repo_id:
                raise NotFoundError(f"nothing of {repo} is stored")
            waiting = unread_numbers(session, self._repo_id, self.model.identity, prompt_version())
            self._used_today = tokens_today(session)
            self.unmerged = unmerged_numbers(session, self._repo_id)
        self.numbers = [number for number in waiting if not numbers or number in set(numbers)][:limit]
        self._chars_max = _chars_for(self.model)
        self._unconfirmed: list[ModelReply] = []

    def tasks(self) -> Iterator[_Task]:
        """Yield the prompts to send; an issue whose text was sent before is noted and skipped."""
        for start in range(0, len(self.numbers), BATCH):
            batch = self.numbers[start : start + BATCH]
            with self._store.reading() as session:
                sources = find_sources(session, self._repo_id, self._repo, batch)
                asked = asked_digests(session, self._repo_id, batch, self.model.identity, prompt_version())
            same: list[tuple[int, str]] = []
            for source in sorted(sources, key=lambda item: -item.issue.number):
                issue = issue_text_of(source)
                prompt = make_prompt(issue, self._chars_max)
                if (issue.number, prompt.digest) in asked:
                    same.append((issue.number, prompt.digest))
                elif prompt.lines:
                    yield _Task(issue, prompt, self._chars_max)
            self._note_unchanged(same)

    def _note_unchanged(self, texts: list[tuple[int, str]]) -> None:
        self.result.unchanged += len(texts)
        if texts:
            with self._store.unit_of_work(changes=None) as session:
                note_unchanged(session, self._repo_id, texts, self.model.identity, prompt_version())

    def affordable(self, tasks: Iterable[_Task], tokens_per_day: int | None) -> list[_Task]:
        """Return those of these tasks that today's tokens suffice for; otherwise the run is stopped."""
        reserved, found = self._used_today, list[_Task]()
        for task in tasks:
            if tokens_per_day is not None and reserved >= tokens_per_day:
                self.result.stopped = f"today's {tokens_per_day:,} tokens are used; tomorrow it goes on"
                break
            reserved += task.prompt.tokens + REPLY_TOKENS_MAX // 4
            found.append(task)
        return found

    def ask(self, task: _Task) -> tuple[_Task, Answer]:
        """Send a prompt; one that is too long for the model is halved."""
        answer = self._answer(task)
        while answer.kind == "too_long" and task.chars_max // 2 >= CHARS_MIN:
            half = task.chars_max // 2
            task = _Task(task.issue, make_prompt(task.issue, half), half)
            answer = self._answer(task)
        return task, answer

    def _answer(self, task: _Task) -> Answer:
        try:
            return self._client.ask(self.model, task.prompt.content)
        except ReaderError as error:
            return Answer("failed", error.message)

    def store_replies(self, answers: Iterable[tuple[_Task, Answer]]) -> list[int]:
        """Store the replies; return the numbers of the complete ones, to be merged.

        A failure or refusal is stored only after another issue was answered: the server itself may be down.
        """
        replies: list[ModelReply] = []
        for task, answer in answers:
            if answer.kind == "other_model":
                self.result.stopped = answer.text
            elif answer.kind in ("complete", "cut"):
                replies += [*self._unconfirmed, self._reply_record(task, answer)]
                self._unconfirmed = []
            else:
                self._unconfirmed.append(self._reply_record(task, answer))
                if len(self._unconfirmed) >= FAULTS_MAX and not self.result.stopped:
                    self.result.stopped = answer.text or "the model reader's server refuses every report"
        if replies:
            with self._store.unit_of_work(changes=None) as session:
                save_replies(session, self._repo_id, replies)
        for reply in replies:
            self._count(reply)
        return [item.number for item in replies if item.outcome == "complete"]

    def finish(self) -> ReadResult:
        """Return the result.

        Raises:
            ReaderError: the server failed and answered no issue.
        """
        self.result.left = len(self.numbers) - self.result.asked - self.result.unchanged
        if self._unconfirmed and not self.result.outcomes:
            raise ReaderError(self.result.stopped or self._unconfirmed[-1].reply)
        return self.result

    def _reply_record(self, task: _Task, answer: Answer) -> ModelReply:
        reply = ModelReply(
            number=task.issue.number,
            digest=task.prompt.digest,
            model=self.model.identity,
            prompt_version=prompt_version(),
            outcome=_OUTCOMES.get(answer.kind, "refused"),
            reply=answer.text.replace("\x00", ""),
            chars_max=task.chars_max,
            prompt_tokens=answer.prompt_tokens or task.prompt.tokens,
            reply_tokens=answer.reply_tokens or estimate_tokens(answer.text),
        )
        if answer.kind != "complete":
            return reply
        parsed = parse_reply(answer.text)
        if parsed is None:
            return replace(reply, outcome="invalid")
        proven = check_reply(read_document(task.issue), task.prompt, parsed)
        dropped = dict(proven.dropped)
        return replace(reply, kept=proven.values, dropped=sum(dropped.values()), reasons=dropped)

    def _count(self, reply: ModelReply) -> None:
        tokens = reply.prompt_tokens + reply.reply_tokens
        self._used_today += tokens
        result = self.result
        result.asked += 1
        result.tokens += tokens
        result.kept += reply.kept
        result.dropped += reply.dropped
        result.outcomes[reply.outcome] = result.outcomes.get(reply.outcome, 0) + 1


def _chars_for(model: ServedModel) -> int:
    """Return the prompt length in characters that fits the model's context, if that is known."""
    if model.tokens_max is None:
        return CHARS_MAX
    room = model.tokens_max - REPLY_TOKENS_MAX - estimate_tokens(instructions())
    return max(CHARS_MIN, min(CHARS_MAX, room * CHARS_PER_TOKEN))
