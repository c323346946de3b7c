"""A deterministic simulation: the real engine over the memory store, one seed a world, one move at a time.

All services of three nodes turn in an order that the seed decides, in simulated time, while schedules, tenants and jobs
are changed. At every call of the store a process may die, be cut off, be held up, stand still past
its leases, or call twice. Everything that reached the store is written down, and checkers go over it (`verdict`).

A violation names its seed. To replay it, with every move printed:

    python -m rota.testing.simulation --seed 28 --steps 500

and a batch of seeds, with what it saw:

    python -m rota.testing.simulation --seed 0 --seeds 500

The tests run 500 seeds of 500 steps; the long form is

    ROTA_SIM_SEEDS=2000 ROTA_SIM_STEPS=1000 python -m pytest -n auto tests/simulation
"""
