"""Every action of the dashboard in a browser, without a script."""

from __future__ import annotations

import pytest

from pages.stage import Tab
from rota import every


@pytest.fixture(scope="module")
def plain_tab(browser, shop):
    """A tab whose browser runs no script."""
    with Tab.open(browser, shop, java_script_enabled=False) as tab:
        yield tab


@pytest.fixture
def plain(plain_tab):
    yield from plain_tab.watched()


def enqueue(shop, name, **options):
    return shop.app.__rota_tasks__.get("mail.send").using(**options).enqueue(name)


def test_all_failed_jobs_of_one_task_are_retried_with_a_count_of_those_that_were_not(plain, shop):
    plain.go("/jobs")
    plain.page.fill("#q", "task:payments.charge")
    plain.page.click("button:has-text('Search')")
    plain.page.click("#tabs a:has-text('Failed')")
    plain.page.check("input[name=scope][value=all]")
    plain.page.click("button[value=retry]")
    assert "Retry 3 jobs?" in plain.text()
    shop.app.jobs.retry(shop.ids["failed"])  # another operator is faster
    plain.page.fill("#reason", "the bank is back")
    plain.page.click("button:has-text('Retry 3 jobs')")
    assert "2 jobs will run again. Left as they were: 1." in plain.text()
    plain.page.click("#tabs a:has-text('Queued')")
    assert plain.page.locator("#list tbody tr").count() == 3


def test_ticked_jobs_are_cancelled_and_all_that_match_are_deleted_after_a_count(plain, shop):
    jobs = [enqueue(shop, f"bulk{number}@example.org", delay="1h", queue="bulk") for number in range(3)]
    plain.go("/jobs?q=queue:bulk")
    for job in jobs[:2]:
        plain.page.check(f'input[value="{job.id}"]')
    plain.page.click("button[value=cancel]")
    assert "2 jobs were cancelled or asked to stop." in plain.text()
    plain.page.check("input[name=scope][value=all]")
    plain.page.click("button[value=delete]")
    assert "Delete 2 jobs?" in plain.text()  # the third waits, and only jobs that have ended are deleted
    plain.page.click("button:has-text('Delete 2 jobs')")
    assert "2 jobs were deleted." in plain.text()
    assert [job.id for job in shop.app.jobs.list(queue="bulk").items] == [jobs[2].id]


def test_the_failures_of_one_cause_are_retried_from_the_first_page(plain, shop):
    plain.go("/")
    plain.page.click("#fails li:has-text('ConnectionError') button:has-text('Retry 1')")
    assert "Retry 1 job?" in plain.text()
    plain.page.click("button:has-text('Retry 1 job')")
    assert "1 job will run again." in plain.text()
    assert [job.task for job in shop.app.jobs.list(state="queued", task="invoices.sync").items] == ["invoices.sync"]


def test_one_job_is_cancelled_retried_and_deleted_on_its_page(plain, shop):
    job = enqueue(shop, "one@example.org", delay="1h")
    plain.go(f"/jobs/{job.id}")
    plain.page.click("button:has-text('Cancel…')")
    plain.page.fill("#why", "a mistake")
    plain.page.click("button:has-text('Cancel the job')")
    assert "a mistake" in plain.text()
    plain.page.click("button:has-text('Retry')")
    assert shop.app.jobs.get(job.id).state == "scheduled"
    shop.app.jobs.cancel(job.id)
    plain.go(f"/jobs/{job.id}")
    plain.page.click("button:has-text('Delete…')")
    plain.page.click("button:has-text('Delete 1 job')")
    assert "1 job was deleted." in plain.text()
    assert shop.app.open().get_jobs([job.id]) == []


def test_a_schedule_is_run_disabled_enabled_and_removed(plain, shop):
    shop.app.schedules.put("by-hand", shop.app.__rota_tasks__.get("usage.bill").job(), every("1h"))
    plain.go_until("/schedules?q=by-hand", "button:has-text('Run now')")  # the list may be a second old
    plain.page.click("button:has-text('Run now')")
    assert "by-hand runs now, as job" in plain.text()
    plain.go("/schedules/by-hand")
    plain.page.click("button:has-text('Disable')")
    assert "by-hand is disabled." in plain.text()
    plain.page.click("button:has-text('Enable')")
    assert shop.app.schedules.get("by-hand").is_enabled
    plain.go("/schedules/by-hand/remove")
    assert "1 waiting job is cancelled" in plain.text()
    plain.page.click("button:has-text('Remove the schedule')")
    assert "by-hand was removed." in plain.text()


def test_a_sync_is_started_and_leads_to_its_job(plain):
    plain.go("/sources")
    plain.page.click("tr:has-text('orders') button")
    assert "A sync of store/orders was started." in plain.text()


def test_a_reader_sees_no_button_that_changes_something(browser, shop):
    made = shop.app.tokens.create("ann", role="read")
    context = browser.new_context(java_script_enabled=False)
    try:
        tab = Tab(context.new_page(), shop)
        tab.log_in(made.secret)
        for path in (
            "/",
            "/jobs",
            f"/jobs/{shop.ids['succeeded']}",
            "/schedules",
            "/schedules/stock-levels",
            "/queues",
        ):
            tab.go(path)
            assert tab.page.locator("main form[method=post] button").count() == 0, path
            assert tab.page.locator("main [popovertarget]").count() == 0, path
    finally:
        context.close()
