"""Addresses of every page, for the tests that look at all of them. A page with a parameter adds its examples here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.web.pages.table import PAGES

if TYPE_CHECKING:
    from pages.stage import Door

STREAMS = {"/events"}
MORE = {
    "/audit": ["/audit?subject=nonsense&since=x"],
    "/api": ["/api?q=pause+a+queue"],
    "/jobs": ["/jobs?q=state:failed", "/jobs?q=nonsense"],
    "/schedules": ["/schedules?q=state:failing", "/schedules?q=nope:1"],
}


def with_parameters(door: Door) -> dict[str, list[str]]:
    """Concrete addresses of the pages whose path has a parameter."""
    ids = door.ids
    return {
        "/alerts/rules/{rule}": ["/alerts/rules/reports-late"],
        "/tenants/{tenant}": ["/tenants/acme", "/tenants/bolt"],
        "/catalog/{task}": ["/catalog/reports.export", "/catalog/usage.bill"],
        "/jobs/{job_id}": [f"/jobs/{ids[name]}" for name in sorted(ids)],
        "/jobs/{job_id}/copy": [f"/jobs/{ids['queued']}/copy"],
        "/jobs/{job_id}/lines": [],  # a part of a page
        "/jobs/{job_id}/log.txt": [],  # a download
        "/schedules/{schedule_id}": ["/schedules/invoices-sync", "/schedules/nightly-report"],
        "/schedules/{schedule_id}/edit": ["/schedules/nightly-report/edit"],
        "/schedules/{schedule_id}/pause": ["/schedules/stock-levels/pause"],
        "/schedules/{schedule_id}/remove": ["/schedules/stock-levels/remove"],
    }


def addresses(door: Door) -> list[str]:
    """Every page that a reader can see, at least once, and one that there is not."""
    given = with_parameters(door)
    found = [page.path for page in PAGES if page.method == "GET" and page.role is not None]
    plain = [path for path in found if "{" not in path and path not in STREAMS]
    more = [path for listed in MORE.values() for path in listed]
    missing = [path for path in found if "{" in path and path not in given]
    assert missing == [], "pages without an example in tests/pages/examples.py"
    return [*plain, *more, *(path for listed in given.values() for path in listed), "/nothing-here"]
