"""Defines the reasons in the ledger and in the histories of jobs. One template makes a reason and reads it again.

The store keeps a reason as text. `read_reason` finds its code and values again, so that pages can translate it.
"""

from __future__ import annotations

from rota.model.kept_texts import KeptTexts

REASONS = {
    # Why a job is made.
    "enqueued": "enqueued",
    "fired": "fired",
    "caught_up": "caught up",
    "made_ahead": "made ahead",
    "run_now": "run now",
    "run_now_by": "run now by {by}",
    "run_on_start": "run on start",
    "started": "started by hand",
    "started_by": "started by {by}",
    "copy": "a copy of {job}",
    "held": "{reason}; waits for {job}",
    # What happens to it.
    "due": "due",
    "released": "released",
    "claimed": "claimed",
    "returned": "returned",
    "returned_too_late": "returned; the cancel came too late ({reason})",
    "retry": "retry {failures} of {retries}: {error}",
    "snoozed": "snoozed",
    "unknown_task": "task '{task}' is unknown to this worker",
    "shutdown": "worker shutdown",
    "slow": "the jobs before it take longer than expected",
    "alone": "one more death would fail it, so it must run alone",
    "copied_store": "it needed the store, which is being copied",
    "copied_to": "the store is being copied to {target}",
    "worker_lost": "worker lost: {lost} (death {deaths} of {most})",
    "process_died": "process died: {lost} (death {deaths} of {most})",
    "last_worker": "kept as failed: {deaths} workers died while they ran this job; the last: {lost}",
    "last_process": "kept as failed: {deaths} processes died while they ran this job; the last: {lost}",
    # As the two before, in records of an earlier version.
    "parked_worker": "parked: {deaths} workers died while they ran this job; the last: {lost}",
    "parked_process": "parked: {deaths} processes died while they ran this job; the last: {lost}",
    # Parts of these.
    "lease_expired": "{worker} stopped renewing its lease",
    "clock_moved": "{reason}; moved back with the store's clock",
    "unreadable": "the history before this cannot be read: {error}",
    # Why it was cancelled or retried.
    "cancelled": "cancelled",
    "cancelled_hand": "cancelled by hand",
    "cancelled_task": "cancelled by the task",
    "cancelled_by": "cancelled by {by}",
    "cancelled_by_why": "cancelled by {by}: {why}",
    "deleted_hand": "deleted by hand",
    "deleted_by": "deleted by {by}",
    "retried_hand": "retried by hand",
    "retried_by": "retried by {by}",
    "retried_by_why": "retried by {by}: {why}",
    "replaced": "replaced by the next occurrence",
    # Why an occurrence made no job.
    "overlap": "overlap (job {job})",
    "overlap_held": "overlap (job {job}, then job {held})",
    "unique": "unique (job {job})",
    "missed": "catch-up",
    "not_claimed": "catch-up: not claimed in time",
    "disabled": "disabled",
    "retired": "retired",
    "retimed": "schedule re-timed",
    "schedule_disabled": "schedule disabled",
    "schedule_retired": "schedule retired",
    "schedule_removed": "schedule removed",
    "paused": "paused",
    "paused_why": "paused: {why}",
    "paused_by": "paused by {by}",
    "paused_by_why": "paused by {by}: {why}",
    "paused_with": "paused with tenant {tenant}",
    "paused_with_why": "paused with tenant {tenant}: {why}",
    "paused_with_by": "paused with tenant {tenant} by {by}",
    "paused_with_by_why": "paused with tenant {tenant} by {by}: {why}",
}
LAST_DEATHS = ("kept as failed: ", "parked: ")  # how the error of a job begins that died too often
KEPT = KeptTexts("reason", REASONS, nested=frozenset({"reason", "lost"}), names=frozenset({"by", "tenant", "worker"}))
reason_text = KEPT.text
read_reason = KEPT.read


def reason_by_hand(done: str, by: str, why: str) -> str:
    """The reason of a job that was cancelled or retried by hand: by whom and why, as far as they are known."""
    if not by:
        return why or reason_text(f"{done}_hand")
    named = reason_text(f"{done}_by", by=by)
    return named if why in {"", named} else reason_text(f"{done}_by_why", by=by, why=why)
