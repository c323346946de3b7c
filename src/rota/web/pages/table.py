"""Holds the table of all pages: the app, the navigation and the tests are made from it. A new page adds a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.web.pages.views import (
    agenda,
    alert_rules,
    alerts,
    api_docs,
    audit,
    catalog,
    documents,
    home,
    job,
    job_copy,
    jobs,
    live,
    login,
    nodes,
    queues,
    schedule,
    schedule_actions,
    schedule_edit,
    schedules,
    sources,
    tenants,
)

if TYPE_CHECKING:
    from rota.web.pages.page import Page

PAGES: tuple[Page, ...] = (
    *home.PAGES,
    *job.PAGES,
    *job_copy.PAGES,
    *jobs.PAGES,
    *live.PAGES,
    *login.PAGES,
    *queues.PAGES,
    *nodes.PAGES,
    *catalog.PAGES,
    *schedules.PAGES,
    *schedule.PAGES,
    *schedule_actions.PAGES,
    *schedule_edit.PAGES,
    *agenda.PAGES,
    *tenants.PAGES,
    *sources.PAGES,
    *documents.PAGES,
    *alerts.PAGES,
    *alert_rules.PAGES,
    *audit.PAGES,
    *api_docs.PAGES,
)
