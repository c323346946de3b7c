from __future__ import annotations

from every_store import _servers_end_with_the_session  # noqa: F401 - for its effect
