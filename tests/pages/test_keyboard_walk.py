"""A day of an operator by the keyboard alone, in a real browser."""

from __future__ import annotations

import pytest

from pages.keyboard import Keyboard
from pages.stage import TOKEN, Tab
from rota import cron


@pytest.fixture(scope="module")
def tab(browser, shop):
    """A tab of somebody who has not logged in yet."""
    shop.app.schedules.put("by-hand", shop.app.__rota_tasks__.get("usage.bill").job(), cron("0 9 * * *"), by="ann")
    context = browser.new_context(viewport={"width": 1440, "height": 900}, timezone_id="Europe/Riga")
    context.set_default_timeout(60_000)
    found = Tab(context.new_page(), shop)
    yield found
    context.close()


@pytest.fixture(scope="module")
def keys(tab):
    return Keyboard(tab.page)


def test_an_operators_day_needs_no_mouse(tab, keys, shop):
    log_in(tab, keys)
    retry_a_failed_job(keys, shop)
    pause_a_schedule(tab, keys, shop)
    edit_a_schedule(tab, keys, shop)
    read_the_help(tab, keys)
    run_a_task(tab, keys, shop)
    remove_a_schedule(tab, keys, shop)
    delete_a_job(keys, shop)
    log_out(keys)
    assert tab.errors == []


def log_in(tab, keys) -> None:
    tab.page.goto(f"{tab.door.url}/")
    assert keys.check().name == "Token"
    keys.type(TOKEN)
    keys.go("Enter", to=f"{tab.door.url}/")


def retry_a_failed_job(keys, shop) -> None:
    keys.go("/", to="**/jobs#q")  # the first page has no search of its own
    keys.check()
    keys.type("state:failed task:payments.charge")
    keys.go("Enter", to="**/jobs?q=*")
    keys.reach("payments.charge(3, 384)")
    keys.go("Enter", to=f"**/jobs/{shop.ids['failed']}")
    keys.tour()
    keys.reach("Retry")
    keys.go("Enter", to=f"**/jobs/{shop.ids['failed']}")
    assert shop.app.jobs.get(shop.ids["failed"]).state == "queued"


def pause_a_schedule(tab, keys, shop) -> None:
    keys.go("g", "s", to="**/schedules")
    keys.press("/")
    keys.check()
    keys.type("by-hand")
    keys.go("Enter", to="**/schedules?q=by-hand")
    keys.reach("by-hand")
    keys.go("Enter", to="**/schedules/by-hand")
    keys.reach("Pause…")
    keys.press("Enter")
    tab.page.wait_for_selector("#ask-pause:popover-open")
    assert keys.check().name == "Why (the ledger and the audit keep it)"
    keys.press("Escape")
    tab.page.wait_for_selector("#ask-pause", state="hidden")
    assert keys.check().name == "Pause…"
    keys.press("Space")
    tab.page.wait_for_selector("#ask-pause:popover-open")
    keys.type("stocktaking")
    keys.go("Enter", to="**/schedules/by-hand")
    assert shop.app.schedules.get("by-hand").record.pause.reason == "stocktaking"


def edit_a_schedule(tab, keys, shop) -> None:
    keys.reach("Edit")
    keys.go("Enter", to="**/schedules/by-hand/edit")
    keys.tour()
    keys.reach("Cron expression")
    keys.press("Control+a")
    keys.type("15 10 * * *")
    tab.page.wait_for_selector("#preview :text('10:15')")
    assert keys.check().name == "Cron expression"  # the preview takes no focus
    keys.reach("skip")
    keys.press("ArrowDown")
    assert keys.check().name == "queue"
    keys.reach("Save")
    keys.go("Enter", to="**/schedules/by-hand")
    spec = shop.app.schedules.get("by-hand").record.spec
    assert (str(spec.trigger), spec.overlap) == ("cron 15 10 * * *", "queue")


def read_the_help(tab, keys) -> None:
    keys.go("g", "a", to="**/agenda")
    keys.tour()
    for closing in ("?", "Escape", "Enter"):
        keys.press("?")
        tab.page.wait_for_selector("#keys:popover-open")
        assert keys.check().name == "Close"
        keys.press(closing)
        tab.page.wait_for_selector("#keys", state="hidden")


def run_a_task(tab, keys, shop) -> None:
    keys.go("g", "c", to="**/catalog")
    keys.reach("payments.charge")
    keys.go("Enter", to="**/catalog/payments.charge")
    keys.reach("order")
    keys.type("1000")
    keys.reach("cents")
    keys.type("250")
    keys.reach("Enqueue the job")
    keys.go("Enter", to="**/jobs/*")
    (job,) = shop.app.jobs.list(state="queued", task="payments.charge", limit=1).items
    assert job.id == tab.page.url.rpartition("/")[2]


def remove_a_schedule(tab, keys, shop) -> None:
    keys.go("g", "s", to="**/schedules")
    keys.reach("by-hand")
    keys.go("Enter", to="**/schedules/by-hand")
    keys.reach("Remove…")
    keys.press("Enter")
    tab.page.wait_for_selector("#ask-remove:popover-open")
    assert keys.check().name == "Leave it as it is"  # a second Enter destroys nothing
    keys.reach("Remove the schedule")
    keys.go("Enter", to="**/schedules")
    assert shop.app.open().get_schedules(["by-hand"]) == []


def delete_a_job(keys, shop) -> None:
    keys.go("g", "j", to="**/jobs")
    keys.press("/")
    keys.type("state:cancelled")
    keys.go("Enter", to="**/jobs?q=*")
    keys.reach("Select mail.send('dan@example.org')")
    keys.press("Space", "/")  # a box that is ticked leaves the keys alone
    assert keys.check().name == "Search jobs"
    keys.press("Escape")
    assert keys.here() is None
    keys.reach("Delete…")
    keys.go("Enter", to="**/jobs")
    assert keys.check().name == "Leave them as they are"
    keys.reach("Delete 1 job")
    keys.go("Enter", to="**/jobs?q=*")
    assert shop.app.open().get_jobs([shop.ids["cancelled"]]) == []


def log_out(keys) -> None:
    keys.reach("Log out")
    keys.go("Enter", to="**/login")
    assert keys.check().name == "Token"


def test_the_menu_of_a_phone_and_its_dialogs_need_no_finger(browser, shop):
    with Tab.open(browser, shop, viewport={"width": 390, "height": 844}) as tab:
        keys = Keyboard(tab.page)
        tab.go("/schedules/stock-levels")
        keys.tour()
        keys.reach("Remove…")
        keys.press("Enter")
        tab.page.wait_for_selector("#ask-remove:popover-open")
        assert keys.check().name == "Leave it as it is"
        assert tab.faults() == []
        keys.reach("Menu")  # the focus leaves the dialog, which is over then
        assert tab.page.locator("#ask-remove:popover-open").count() == 0
        keys.press("Enter")
        tab.page.wait_for_selector("#nav:popover-open")
        assert tab.faults() == []
        keys.reach("Jobs")
        keys.go("Enter", to="**/jobs")
