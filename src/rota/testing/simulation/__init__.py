"""Simulates several nodes: the real engine over the memory store, one move at a time, decided by a seed.

The services of three nodes turn in an order that the seed decides, in simulated time, while schedules, tenants and
jobs are changed. At every call of the store a process may die, lose its connection, be delayed, be frozen for longer
than its leases, or send the call twice. Every call that reached the store is recorded, and checkers read the record
(`verdict`).

A violation names its seed. To replay it, with every move printed:

    python -m rota.testing.simulation --seed 28 --steps 500

To run many seeds, and count what they did:

    python -m rota.testing.simulation --seed 0 --seeds 500

The tests run 500 seeds of 500 steps; the long form is

    ROTA_SIM_SEEDS=2000 ROTA_SIM_STEPS=1000 python -m pytest -n auto tests/simulation
"""
