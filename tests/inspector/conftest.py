from __future__ import annotations

from cli.conftest import folder, rota  # noqa: F401 - fixtures
