"""Every answer of why has a code and values beside its sentence, for programs and for other languages."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

import rota.model.why
from rota.model.schedules.firing import overlap_reason
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import Pause
from rota.model.why.job import Answer, Around, JobVerdict, Sealed
from rota.model.why.schedule import Records, Verdict, why
from unit.model.test_why import BEFORE, LIVE, NOW, SLOT, a_schedule
from unit.model.values import MINUTE, NOON

FOLDER = Path(rota.model.why.__file__).parent


def codes_in_source() -> list[str]:
    """The codes that stand in the source: what is given as code=, or assigned to a name `code`."""
    found = []
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "code":
                found += literals(node.value)
            if isinstance(node, ast.Assign) and "code" in ast.unparse(node.targets[0]).strip("()").split(", "):
                names = ast.unparse(node.targets[0]).strip("()").split(", ")
                value = node.value.elts[names.index("code")] if isinstance(node.value, ast.Tuple) else node.value
                found += literals(value)
    return found


def literals(node: ast.expr) -> list[str]:
    return [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def test_no_answer_is_without_a_code():
    for kind in (Answer, Verdict, JobVerdict):
        fields = {field.name: field for field in msgspec.structs.fields(kind)}
        assert fields["code"].required
    assert len(set(codes_in_source())) >= 50


@pytest.mark.parametrize("code", sorted(set(codes_in_source())))
def test_a_code_is_made_of_plain_words(code):
    assert code.replace(".", "_").replace("_", "a").isalpha()
    assert code == code.lower()


def line(outcome, reason=""):
    return Occurrence(schedule_id="tick", after_at=BEFORE, through_at=SLOT, outcome=outcome, reason=reason)


def test_an_overlap_says_by_which_job_and_what_that_was_doing():
    live = LIVE["running"]()
    records = Records(occurrence=line("skipped", overlap_reason(live.id, None)), other=live)
    verdict = why(a_schedule(), SLOT, records, Around(now=NOW))
    assert verdict.code == "skipped.overlap"
    assert verdict.values == {
        "job": live.id, "policy": "skip", "held": None, "of": "2026-09-21T14:23:20Z", "doing": "running",
    }  # fmt: skip


def test_a_pause_says_who_and_why():
    schedule = msgspec.structs.replace(a_schedule(), pause=Pause(at=NOON, by="ann", reason="month end"))
    verdict = why(schedule, SLOT, Records(), Around(now=SLOT - MINUTE))
    assert verdict.code == "open.paused"
    assert verdict.values == {"by": "ann", "reason": "month end", "until": None, "tenant": None}


def test_what_is_due_says_why_nobody_fired_it():
    found = {
        why(a_schedule(), SLOT, Records(), around).code
        for around in (
            Around(now=NOW),
            Around(now=NOW, has_scheduler=False),
            Around(now=NOW, seal=Sealed(other="redis")),
        )
    }
    assert found == {"due.behind", "due.no_scheduler", "due.sealed"}


@pytest.mark.parametrize(
    ("seal", "words", "fix"),
    [
        (Sealed(other="redis", is_done=True), "The store is sealed: everything in it was copied to redis", "there"),
        (Sealed(other="redis"), "The store is sealed while it is copied to redis", "in the store it is copied to"),
        (Sealed(other="redis", is_target=True), "The store is sealed while it is filled from redis", "has ended"),
    ],
)
def test_what_is_to_come_in_a_sealed_store_says_so(seal, words, fix):
    verdict = why(a_schedule(), SLOT, Records(), Around(now=SLOT - MINUTE, seal=seal))
    assert (verdict.outcome, verdict.code, verdict.values) == (
        "expected: store sealed",
        "expected.sealed",
        {"in": 60.0},
    )
    assert verdict.words == f"It would be due in 60 s. {words}, so nothing is fired."
    assert fix in verdict.fix


def test_the_sentence_is_the_words_with_the_schedule_and_the_time_before_them():
    verdict = why(a_schedule(), SLOT, Records(), Around(now=NOW))
    assert verdict.sentence == f"tick at Mon 2026-09-21 14:33:20 UTC: {verdict.words}"
