"""Unique keys and overlap slots: a row while the job that has one is live, or while a key holds for a period."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.job import Job
    from rota.store.postgres.transaction import Transaction


class Keys:
    """One namespace's keys, and the slots of its schedules."""

    def live(self, tx: Transaction, slots: Sequence[str]) -> dict[str, str]:
        """The live jobs in the slots of these schedules."""
        if not slots:
            return {}
        return dict(tx.rows("SELECT slot, id FROM {ns}.overlap_slot WHERE slot = ANY(%s)", (sorted(set(slots)),)))

    def holders(self, tx: Transaction, keys: Sequence[str], now: int) -> dict[str, str]:
        """Who has which key; one that only held for a period is freed once that is over."""
        if not keys:
            return {}
        rows = tx.rows(
            "SELECT k.key, k.id, k.seq, f.seq IS NOT NULL, coalesce(j.key_until, 0) FROM {ns}.unique_key k "
            "LEFT JOIN {ns}.job j ON j.seq = k.seq LEFT JOIN {ns}.finished f ON f.seq = k.seq WHERE k.key = ANY(%s)",
            (sorted(set(keys)),),
        )
        spent = [seq for _, _, seq, has_ended, until in rows if has_ended and until <= now]
        if spent:
            self.free(tx, spent)
            tx.run("UPDATE {ns}.finished SET key = NULL WHERE seq = ANY(%s)", (spent,))
        return {key: job_id for key, job_id, seq, _, _ in rows if seq not in spent}

    def claim(self, tx: Transaction, jobs: Sequence[Job], now: int) -> dict[str, str]:
        """Take the keys of new jobs that have no place yet; gives, by job, who was faster."""
        taken: dict[str, str] = {}
        wanted = {job.key: job for job in jobs if job.key}
        while wanted:
            names = sorted(wanted)
            got = tx.rows(
                "INSERT INTO {ns}.unique_key (key, seq, id) SELECT w.key, -nextval('{ns}.job_seq_seq'), w.id "
                "FROM unnest(%s::text[], %s::text[]) AS w (key, id) ORDER BY w.key "
                "ON CONFLICT (key) DO NOTHING RETURNING key",
                (names, [wanted[name].id for name in names]),
            )
            for (key,) in got:
                del wanted[key]
            if wanted:
                for key, holder in self.holders(tx, list(wanted), now).items():
                    taken[wanted.pop(key).id] = holder  # else it was freed meanwhile: once more
        return taken

    def settle_places(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        """Say which place a key's job has got."""
        if jobs:
            tx.run(
                "UPDATE {ns}.unique_key k SET seq = w.seq FROM unnest(%s::text[], %s::bigint[]) AS w (key, seq) "
                "WHERE k.key = w.key",
                ([job.key for job in jobs], [job.seq for job in jobs]),
            )

    def give_up(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        """Free the keys of jobs that turned out to be there already."""
        tx.run_many("DELETE FROM {ns}.unique_key WHERE key = %s AND seq < 0", [(job.key,) for job in jobs])

    def put(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        """Give keys and slots to jobs that have a place."""
        self.put_slots(tx, jobs)
        self._put_keys(tx, jobs)

    def _put_keys(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        rows = sorted((job.key, job.seq, job.id) for job in jobs if job.key)
        if rows:
            tx.run(
                "INSERT INTO {ns}.unique_key (key, seq, id) SELECT * FROM unnest(%s::text[], %s::bigint[], %s::text[])",
                [list(column) for column in zip(*rows, strict=True)],
            )

    def put_slots(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        """Let jobs that have a place take the slots of their schedules."""
        rows = sorted((job.slot, job.seq, job.id) for job in jobs if job.slot)
        if rows:
            tx.run(
                "INSERT INTO {ns}.overlap_slot (slot, seq, id) "
                "SELECT * FROM unnest(%s::text[], %s::bigint[], %s::text[])",
                [list(column) for column in zip(*rows, strict=True)],
            )

    def move(self, tx: Transaction, moved: Sequence[tuple[Job, Job]]) -> None:
        """Free what jobs had before, and give them what they have after."""
        keys = [(before, after) for before, after in moved if before.key != after.key]
        slots = [(before, after) for before, after in moved if before.slot != after.slot]
        self.free(tx, [before.seq for before, _ in keys if before.key])
        left = [before.seq for before, _ in slots if before.slot]
        if left:
            tx.run("DELETE FROM {ns}.overlap_slot WHERE seq = ANY(%s)", (left,))
        self._put_keys(tx, [after for _, after in keys])
        self.put_slots(tx, [after for _, after in slots])

    def free(self, tx: Transaction, seqs: Sequence[int]) -> None:
        if seqs:
            tx.run("DELETE FROM {ns}.unique_key WHERE seq = ANY(%s)", (list(seqs),))
