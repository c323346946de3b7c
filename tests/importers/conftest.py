from __future__ import annotations

from beat_folder import filled, folder  # noqa: F401 - fixtures

from every_store import _servers_end_with_the_session  # noqa: F401 - for its effect
