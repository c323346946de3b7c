"""Runs all checkers over one simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.inspector.reading import all_schedules
from rota.testing.simulation.checks.claims import check_claims
from rota.testing.simulation.checks.leases import check_leases, check_stale_writes
from rota.testing.simulation.checks.lives import (
    check_additions,
    check_budgets,
    check_keys,
    check_moves,
    check_no_loss,
)
from rota.testing.simulation.checks.logs import check_logs
from rota.testing.simulation.checks.occurrences import check_doubles, check_firings, check_ledger, life_slots
from rota.testing.simulation.checks.policies import check_policies
from rota.testing.simulation.checks.progress import check_not_stuck
from rota.testing.simulation.checks.tenants import check_tenants
from rota.testing.simulation.checks.timeliness import check_lateness, check_spin
from rota.testing.simulation.checks.violation import Violation
from rota.testing.simulation.history import all_occurrences
from rota.testing.simulation.nodes import LEASE
from rota.testing.simulation.operations import RETRIES

if TYPE_CHECKING:
    from rota.testing.simulation.simulation import Simulation

TRUE_COUNTS = "I11: counters equal a recount"
NOT_EARLY = "I10: no run begins before its time"


def violations_of(simulation: Simulation) -> list[Violation]:
    """All violations, in the order in which they happened."""
    history = simulation.recorder.history
    found = [
        *simulation.faults,
        *check_no_loss(history),
        *check_additions(history),
        *check_firings(history),
        *check_doubles(history),
        *check_policies(history),
        *_ledger_faults(simulation),
        *check_leases(history),
        *check_stale_writes(history),
        *check_moves(history),
        *check_keys(history),
        *check_not_stuck(history, LEASE),
        *check_claims(history),
        *check_budgets(history, lambda job: RETRIES[job.task]),
        *check_lateness(history, simulation.fault_free_from, simulation.recovered_from, LEASE),
        *check_spin(history),
        *check_logs(history, simulation.endings.written),
        *(Violation(NOT_EARLY, simulation.step, words) for words in simulation.endings.early),
        *check_tenants(simulation.store, simulation.step, simulation.clock.now()),
        *_counter_faults(simulation),
    ]
    return sorted(found, key=lambda violation: violation.step)


def _ledger_faults(simulation: Simulation) -> list[Violation]:
    store, history = simulation.store, simulation.recorder.history
    return [
        violation
        for schedule in all_schedules(store)
        for violation in check_ledger(
            schedule, life_slots(history, schedule.id), all_occurrences(store, schedule.id), simulation.step
        )
    ]


def _counter_faults(simulation: Simulation) -> list[Violation]:
    differences = simulation.store.recount()
    return [Violation(TRUE_COUNTS, simulation.step, str(differences))] if differences else []
