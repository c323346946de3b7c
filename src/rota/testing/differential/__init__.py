"""Compares stores: does the same random operations to several and compares every answer with that of memory.

A seed decides a random walk: operations of workers, schedulers, callers and operators, chosen from what the memory
store shows. Much of that is stale, and some is wrong. Each operation runs on every store at an injected time. The
answers must be the same, and so must the classes of errors. Every few steps everything that can be read is compared.
The first difference is shown with its seed and step, the operation and both answers. Operations that it does not need
are dropped.

    python -m rota.testing.differential --seed 7 --steps 500 --stores memory,sqlite,redis://localhost:6379

`memory` is the reference. `sqlite` is a file that is deleted afterwards. A URL is used under new namespaces, which are
not deleted: use servers that serve nothing else. The tests run 5,000 operations on every store; the long form is

    ROTA_DIFF_SEEDS=100 ROTA_DIFF_STEPS=500 python -m pytest -n auto tests/differential
"""
