"""The dashboard in a Django site: its login, its permissions as roles, its admin."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client, override_settings

from rota.django import app, bridge
from rota.testing import Kit
from with_django.shop import jobs

HERE = "/ops/rota"


@pytest.fixture(autouse=True)
def kit():
    app.close()
    with Kit(app) as found:
        yield found


@pytest.fixture
def log_in():
    made = []

    def make(*permissions: str, **options) -> Client:
        user = User.objects.create_user(f"user{len(made)}", **options)
        made.append(user)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        client = Client(enforce_csrf_checks=True)
        client.force_login(user)
        return client

    yield make
    for user in made:
        user.delete()


def form_of(client: Client, path: str) -> str:
    """The secret of the forms of a page."""
    return re.search(r'name="_form" value="(\w+)"', client.get(f"{HERE}{path}").content.decode())[1]


def pause(client: Client, token: str, origin: str = "http://testserver"):
    return client.post(
        f"{HERE}/schedules/tidy/act",
        f"verb=pause&_form={token}",
        content_type="application/x-www-form-urlencoded",
        headers={"Origin": origin},
    )


@override_settings(LOGIN_URL="admin:login")
def test_a_stranger_is_sent_to_djangos_login():
    bridge._bridges.clear()
    answer = Client().get(f"{HERE}/jobs?state=failed")
    assert (answer.status_code, answer["Location"]) == (303, "/admin/login/?next=/ops/rota/jobs%3Fstate%3Dfailed")
    bridge._bridges.clear()


def test_a_user_without_permissions_is_refused(log_in):
    assert log_in().get(f"{HERE}/").status_code == 403


def test_who_may_look_sees_pages_jobs_and_styles_and_changes_nothing(log_in):
    client = log_in("view_dashboard")
    job = jobs.receipt.enqueue(7)
    page = client.get(f"{HERE}/jobs/{job.id}")
    assert page.status_code == 200
    assert "user0" in page.content.decode()
    style = re.search(r'href="(/ops/rota/static/[^"]+\.css)"', page.content.decode())[1]
    assert client.get(style)["Content-Type"].startswith("text/css")
    refused = pause(client, form_of(client, "/schedules"))
    assert "needs the role operate" in refused.content.decode()


def test_an_operator_acts_and_the_audit_names_them(log_in):
    client = log_in("operate_dashboard")
    assert pause(client, form_of(client, "/schedules/tidy")).status_code == 303
    assert app.schedules.get("tidy").is_paused
    assert app.changes().items[0].by == "user0"
    assert "tidy" in client.get(f"{HERE}/audit").content.decode()


def test_a_form_without_its_token_or_of_another_site_does_nothing(log_in):
    client = log_in("operate_dashboard")
    token = form_of(client, "/schedules/tidy")
    assert pause(client, "").status_code == 403
    assert pause(client, token, origin="http://evil.test").status_code == 403
    assert not app.schedules.get("tidy").is_paused


def test_a_superuser_is_an_admin_and_tokens_work_without_a_session(log_in):
    client = log_in(is_superuser=True)
    assert client.get(f"{HERE}/api/v1/tokens").status_code == 200
    secret = app.tokens.create("robot").secret
    answer = Client().get(f"{HERE}/api/v1/jobs", headers={"Authorization": f"Bearer {secret}"})
    assert answer.json()["items"] == []
    assert Client().get(f"{HERE}/api/v1/jobs").status_code == 401


def test_a_stream_is_cut_so_that_no_thread_of_the_server_is_held(log_in, monkeypatch):
    monkeypatch.setattr(bridge, "STREAM_FOR", 0.05)
    answer = log_in("view_dashboard").get(f"{HERE}/events")
    assert answer["Content-Type"].startswith("text/event-stream")
    assert answer.content.startswith(bridge.RETRY)


def test_the_admin_has_a_link_for_those_who_may_use_it(log_in):
    may, may_not = log_in("view_dashboard", is_staff=True), log_in(is_staff=True)
    assert b"/admin/rota/dashboard/" in may.get("/admin/").content
    assert may.get("/admin/rota/dashboard/")["Location"] == "/ops/rota/"
    assert b"/admin/rota/dashboard/" not in may_not.get("/admin/").content
