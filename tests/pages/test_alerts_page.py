"""The page of alerts: what is wrong, who was told, silences with a reason, and a test of each channel."""

from __future__ import annotations

import pytest

from pages.stage import Tab, page_text


@pytest.fixture
def alerts(tab):
    tab.go("/alerts")
    return tab


def test_open_alerts_come_first_with_what_became_of_their_messages(alerts):
    text = alerts.text()
    assert "2 alerts are open. Messages of 1 alert did not reach a channel." in text
    rows = [row.inner_text() for row in alerts.page.locator("#list tr[data-id]").all()]
    assert len(rows) == 3
    assert "ops: alert is sent again: the webhook answered with status 503" in " ".join(rows[:2])
    assert "Queue mail is within its limit again" in rows[2]
    assert "very-secret" not in alerts.page.content()
    assert "https://hooks.example.org/…" in text


def test_the_first_page_links_to_open_alerts(tab):
    tab.go("/")
    tab.page.locator('main a[href="/alerts"]').click()
    assert tab.shows("2 alerts are open.")


def test_a_rule_is_silenced_with_a_reason_and_heard_again(alerts, shop):
    row = alerts.page.locator('tr[data-rule="invoices"]')
    row.get_by_role("button").click()
    dialog = alerts.page.locator("dialog:popover-open")
    dialog.locator("select").select_option("1d")
    dialog.locator("input[type=text]").fill("<b>the bank</b> moves")
    dialog.locator("button.prime").click()
    assert "invoices is silent." in alerts.text()
    assert "<b>the bank</b> moves" in row.inner_text()
    (silence,) = [one for one in shop.app.alerts.rules().silences if one.target == "invoices"]
    assert (silence.until - silence.at).total_seconds() == pytest.approx(86_400, abs=60)
    alerts.page.locator('tr[data-rule="invoices"] button').click()
    assert "invoices is no longer silent." in alerts.text()
    assert [one.target for one in shop.app.alerts.rules().silences] == ["backlog"]


def test_one_alert_is_silenced_until_a_time(alerts, shop):
    alert = next(one for one in shop.app.alerts.list().items if one.rule == "nodes")
    alerts.page.locator(f'tr[data-id="{alert.id}"] button').click()
    dialog = alerts.page.locator("dialog:popover-open")
    dialog.locator("input[type=datetime-local]").fill("2000-01-01T00:00")
    dialog.locator("button.prime").click()
    assert "Nothing was silenced." in alerts.text()
    alerts.page.locator(f'tr[data-id="{alert.id}"] button').click()
    dialog = alerts.page.locator("dialog:popover-open")
    dialog.locator("input[type=datetime-local]").fill("2100-01-01T00:00")
    dialog.locator("button.prime").click()
    assert shop.app.alerts.get(alert.id).silence.until.year in {2099, 2100}
    shop.app.alerts.unsilence(alert.id)


def test_a_channel_is_tested_from_the_page(alerts):
    alerts.page.locator('tr[data-channel="pager"] button').click()
    assert "Channel pager took the test message." in alerts.text()


def test_the_page_in_german(shop):
    text = page_text(shop, "/alerts", "de")
    assert "2 Alarme sind offen." in text
    assert "ein Lauf schlägt fehl" in text


def test_a_rule_is_added_changed_and_removed_without_scripts(browser, shop):
    with Tab.open(browser, shop, java_script_enabled=False) as tab:
        tab.go("/alerts")
        tab.page.get_by_role("link", name="New rule").click()
        tab.page.get_by_label("Name").fill("mail <slow>")
        tab.page.get_by_label("When").select_option("oldest")
        tab.page.get_by_label("Which").fill("mail")
        tab.page.get_by_label("pager").check()
        tab.page.get_by_role("button", name="Add the rule").click()
        text = tab.text()
        assert "Nothing was saved." in text
        assert "alert name 'mail <slow>': use 1 to 127 of the characters" in text
        assert "This condition needs a duration, such as 26h." in text
        assert tab.page.get_by_label("Which").input_value() == "mail"
        assert tab.page.get_by_label("When").input_value() == "oldest"
        assert tab.page.get_by_label("pager").is_checked()
        tab.page.get_by_label("Name").fill("mail-slow")
        tab.page.get_by_label("After").fill("5m")
        tab.page.get_by_role("button", name="Add the rule").click()
        assert tab.shows("Rule mail-slow was added. Nodes check it within a minute.")
        rule = shop.app.alerts.rule("mail-slow")
        assert (rule.selects, rule.after, rule.channels, rule.origin) == ("mail", "5m", ["pager"], "store")
        tab.page.get_by_role("link", name="Edit: mail-slow").click()
        shop.app.alerts.put("mail-slow", when="oldest", queue="mail", after="7m", by="ben")
        tab.page.get_by_label("After").fill("10m")
        tab.page.get_by_role("button", name="Save").click()
        assert tab.shows("It was changed while you were editing")
        assert tab.page.get_by_label("After").input_value() == "10m"
        tab.page.get_by_role("button", name="Save").click()
        assert shop.app.alerts.rule("mail-slow").after == "10m"
        tab.page.get_by_role("link", name="Edit: mail-slow").click()
        tab.page.get_by_role("button", name="Remove…").click()
        tab.page.get_by_role("button", name="Remove the rule").click()
        assert tab.shows("Rule mail-slow was removed.")
        assert "mail-slow" not in [one.name for one in shop.app.alerts.rules().rules]


def test_a_name_that_is_taken_is_said_at_its_field(alerts):
    alerts.go("/alerts/new")
    for name, said in (("invoices", "is declared in code; change it there"), ("reports-late", "already, in version 1")):
        alerts.page.get_by_label("Name").fill(name)
        alerts.page.get_by_role("button", name="Add the rule").click()
        assert said in alerts.page.locator("#f-name-e").inner_text()
