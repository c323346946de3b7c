"""The differential test: the same random operations on several stores at once, every answer compared with memory's.

A seed makes a walk: what workers, schedulers, callers and operators may do, decided on what the memory store shows,
much of it stale, some of it wrong. Each operation is done to every store at an injected time. Their answers must be
the same, an error's class included; every few steps everything that can be read is compared, too. The first
difference is shown with its seed and step, the operation, and both answers, and is made smaller by dropping operations
that it does not need.

    python -m rota.testing.differential --seed 7 --steps 500 --stores memory,sqlite,redis://localhost:6379

`memory` is the yardstick; `sqlite` is a file that goes afterwards; any URL is used under namespaces of its own, which
stay (a differential test is for servers of its own). The tests run 5,000 operations on every store; the long form is

    ROTA_DIFF_SEEDS=100 ROTA_DIFF_STEPS=500 python -m pytest -n auto tests/differential
"""
