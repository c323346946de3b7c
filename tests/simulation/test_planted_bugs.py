"""Planted bugs: the simulation turns red for each, and names the promise that was broken."""

from __future__ import annotations

import pytest

from rota.testing.simulation.checks.claims import BEST_FIRST
from rota.testing.simulation.checks.leases import NO_STALE_WRITE, ONE_LEASE
from rota.testing.simulation.checks.lives import BUDGETS, ONE_KEY
from rota.testing.simulation.checks.logs import WHOLE_LOGS
from rota.testing.simulation.checks.occurrences import ONCE_EACH
from rota.testing.simulation.checks.policies import BY_POLICY
from rota.testing.simulation.checks.progress import NOT_STUCK
from rota.testing.simulation.checks.tenants import FOLLOWED
from rota.testing.simulation.checks.timeliness import IN_TIME, NO_SPIN
from rota.testing.simulation.simulation import Simulation
from rota.testing.simulation.verdict import TRUE_COUNTS, violations_of
from simulation import plants

MOST_SEEDS = 80  # the rarest of these shows in about one of 30
STEPS = 400
TRIED_FIRST = {  # a seed that showed it when this was written; once it no longer does, the search finds another
    plants.fire_without_the_version: 24,
    plants.a_schedule_follows_half_of_its_tenant: 12,
    plants.drop_reports_in_an_outage: 7,
    plants.settle_without_the_lease: 5,
    plants.lose_the_release: 5,
    plants.replay_everything_missed: 5,
    plants.rescue_a_renewed_lease: 26,
    plants.a_key_is_never_freed: 3,
}

BUGS = [
    (plants.settle_without_the_lease, NO_STALE_WRITE),
    (plants.rescue_a_renewed_lease, ONE_LEASE),
    (plants.fire_without_the_version, NO_STALE_WRITE),
    (plants.claim_without_priority, BEST_FIRST),
    (plants.lose_the_release, NOT_STUCK),
    (plants.advance_before_the_job_is_made, ONCE_EACH),
    (plants.a_death_spends_nothing, BUDGETS),
    (plants.a_retry_spends_nothing, BUDGETS),
    (plants.a_key_is_never_freed, ONE_KEY),
    (plants.drop_reports_in_an_outage, NOT_STUCK),
    (plants.renew_by_holder, NO_STALE_WRITE),
    (plants.claim_under_the_old_number, ONE_LEASE),
    (plants.replay_everything_missed, BY_POLICY),
    (plants.spin_while_idle, NO_SPIN),
    (plants.sleep_through_notifications, IN_TIME),
    (plants.bury_log_lines, WHOLE_LOGS),
    (plants.miscount_removals, TRUE_COUNTS),
    (plants.a_tenant_change_is_never_finished, FOLLOWED),
    (plants.a_schedule_follows_half_of_its_tenant, FOLLOWED),
]


@pytest.mark.parametrize(("plant", "promise"), BUGS, ids=[plant.__name__ for plant, _ in BUGS])
def test_a_planted_bug_is_found(plant, promise, monkeypatch):
    plant(monkeypatch)
    seen = set()
    first = TRIED_FIRST.get(plant, 0)
    for seed in sorted(range(MOST_SEEDS), key=lambda seed: seed != first):
        simulation = Simulation(seed)
        simulation.run(STEPS)
        seen |= {violation.promise for violation in violations_of(simulation)}
        if promise in seen:
            return
    pytest.fail(f"{MOST_SEEDS} seeds did not show it; they saw {seen or 'nothing'}")
