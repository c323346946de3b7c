"""Middleware around creation: it sees every batch once, and if enqueue raises, nothing is stored."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import ContextVar

import pytest
from starlette.testclient import TestClient

from rota import BadOption, Middleware, MiddlewareError, every
from rota.app import internals
from rota.operations.run_copy import run_copy
from rota.tasks.middleware import error_of_middleware
from rota.testing import Kit

tenant: ContextVar[str] = ContextVar("tenant", default="nobody")


class Tenants(Middleware):
    """Adds the caller's tenant to the meta of its jobs."""

    def __init__(self):
        self.batches = []

    def create(self, jobs, call_next):
        self.batches.append([(job.task.rpartition(".")[2], list(job.args), job.schedule_id) for job in jobs])
        call_next([job.replace(meta={**job.meta, "tenant": tenant.get()}) for job in jobs])


class Shifted(Middleware):
    """Stores other arguments than the caller gave, and gives the task the caller's."""

    def create(self, jobs, call_next):
        call_next([job.replace(args=["shifted", *job.args]) for job in jobs])

    def run(self, job, call_next):
        return call_next(job.replace(args=job.args[1:]))

    async def arun(self, job, call_next):
        return await call_next(job.replace(args=job.args[1:]))


@pytest.fixture
def greet(app):
    @app.task(name="shop.greet", retries=0)
    def greet(name: str) -> str:
        return name.upper()

    return greet


def stored(app):
    return app.jobs.list().items


def test_each_call_passes_it_once_whatever_its_number_of_jobs(app, greet):
    app.use(tenants := Tenants())
    greet.enqueue("a")
    app.enqueue_many([greet.job("b"), greet.job("c")])
    app.enqueue("shop.greet", "d")
    assert tenants.batches == [
        [("greet", ["a"], None)],
        [("greet", ["b"], None), ("greet", ["c"], None)],
        [("greet", ["d"], None)],
    ]
    assert len(stored(app)) == 4


def test_what_it_adds_to_the_meta_is_stored(app, greet):
    app.use(Tenants())
    token = tenant.set("acme")
    job = greet.using(meta={"own": 1}).enqueue("a")
    tenant.reset(token)
    assert internals(app).redaction.call(job.record.payload).meta == {"own": 1, "tenant": "acme"}


def test_it_sees_the_context_of_a_coroutine_that_enqueues(app, greet):
    app.use(Tenants())

    async def enqueue():
        tenant.set("acme")
        return [await greet.aenqueue("a"), *await app.aio.enqueue_many([greet.job("b")])]

    for job in asyncio.run(enqueue()):
        assert internals(app).redaction.call(job.record.payload).meta == {"tenant": "acme"}


def test_it_may_choose_another_queue_and_priority(app, greet):
    class Rush(Middleware):
        def create(self, jobs, call_next):
            call_next([job.replace(queue="fast", priority=7) for job in jobs])

    app.use(Rush())
    job = greet.enqueue("a")
    assert (job.queue, job.priority) == ("fast", 7)


def test_the_first_one_is_the_outermost(app, greet):
    order = []

    class Named(Middleware):
        def __init__(self, name):
            self.name = name

        def create(self, jobs, call_next):
            order.append(f"{self.name} in")
            answers = call_next(jobs)
            order.append(f"{self.name} out, {len(answers)} job")

    app.use(Named("a"))
    app.use(Named("b"))
    greet.enqueue("x")
    assert order == ["a in", "b in", "b out, 1 job", "a out, 1 job"]


def test_if_it_raises_before_the_jobs_are_stored_the_caller_gets_the_error_and_nothing_is_stored(app, greet):
    class Refuses(Middleware):
        def create(self, *_):
            raise PermissionError("no tenant")

    app.use(Refuses())
    with pytest.raises(PermissionError, match="no tenant"):
        greet.enqueue("a")
    with pytest.raises(PermissionError):
        app.schedules.put("nightly", greet.job("a"), every("1h"))
    with pytest.raises(PermissionError):
        asyncio.run(greet.aenqueue("a"))
    assert stored(app) == []
    assert app.schedules.list().items == []


def test_if_it_raises_afterwards_the_jobs_stand_and_the_error_is_logged(app, greet, caplog):
    class Late(Middleware):
        def create(self, jobs, call_next):
            call_next(jobs)
            raise RuntimeError("too late")

    app.use(Late())
    job = greet.enqueue("a")
    assert stored(app) == [job]
    assert "the jobs stand" in caplog.text
    assert "too late" in caplog.text


WRONG = {
    "returned without calling call_next: nothing was created": lambda *_: None,
    "must give call_next a list of drafts, got None": lambda _, call_next: call_next(None),
    "it got 1 and gave 0": lambda _, call_next: call_next([]),
    "it got 1 and gave 2": lambda jobs, call_next: call_next([*jobs, *jobs]),
}


@pytest.mark.parametrize("words", WRONG)
def test_one_that_does_not_do_its_part_is_told_so_and_nothing_is_stored(app, greet, words):
    class Wrong(Middleware):
        def create(self, jobs, call_next):
            WRONG[words](jobs, call_next)

    app.use(Wrong())
    with pytest.raises(MiddlewareError, match=words):
        greet.enqueue("a")
    assert stored(app) == []


def test_one_that_hides_the_error_of_another_is_told_so(app, greet):
    class Hides(Middleware):
        def create(self, jobs, call_next):
            with suppress(RuntimeError):
                call_next(jobs)

    class Breaks(Middleware):
        def create(self, *_):
            raise RuntimeError("broken")

    app.use(Hides())
    app.use(Breaks())
    with pytest.raises(MiddlewareError, match="nothing was created"):
        greet.enqueue("a")
    assert stored(app) == []


def test_the_second_call_of_call_next_stores_nothing_more(app, greet, caplog):
    class Twice(Middleware):
        def create(self, jobs, call_next):
            call_next(jobs)
            call_next(jobs)

    app.use(Twice())
    job = greet.enqueue("a")
    assert stored(app) == [job]
    assert "called call_next twice" in caplog.text


def test_what_it_stores_is_checked_like_any_argument(app, greet):
    class Large(Middleware):
        def create(self, jobs, call_next):
            call_next([job.replace(args=["x" * 300_000]) for job in jobs])

    app.use(Large())
    with pytest.raises(TypeError, match="take 300,"):
        greet.enqueue("a")
    assert stored(app) == []


def test_a_template_passes_when_its_schedule_is_put_and_its_jobs_pass_no_more(app):
    runs = []

    @app.schedule(every("1h"), id="tick")
    def tick() -> None: ...

    @app.task(name="shop.greet")
    def greet(name: str) -> None:
        runs.append(name)

    app.use(tenants := Tenants())
    app.use(Shifted())
    with Kit(app) as kit:
        app.schedules.put("hello", greet.job("a"), every("1h"))
        kit.travel("90m")
        assert tenants.batches == [[("tick", [], "tick")], [("greet", ["a"], "hello")]]
        assert runs == ["a"]


def test_a_schedule_whose_template_passed_is_unchanged_by_the_next_start_and_by_edits(app, greet):
    app.use(Shifted())
    app.schedules.put("hello", greet.job("a"), every("1h"))
    before = app.schedules.get("hello")
    app.schedules.put("hello", greet.job("a"), every("1h"))
    assert app.schedules.get("hello").version == before.version
    record = app.open().get_schedules(["hello"])[0]
    app.schedules.register([("hello", record.spec)], record.origin)  # as an edit of another field does
    assert app.open().get_schedules(["hello"])[0].spec == record.spec


def test_a_template_that_middleware_leaves_as_it_is_passes_once_too(app, greet):
    class Counts(Middleware):
        def create(self, jobs, call_next):
            seen.extend(job.schedule_id for job in jobs)
            call_next(jobs)

    seen = []
    app.use(Counts())
    app.schedules.put("hello", greet.job("a"), every("1h"))
    record = app.open().get_schedules(["hello"])[0]
    app.schedules.register([("hello", record.spec)], record.origin)
    assert seen == ["hello"]
    assert app.open().get_schedules(["hello"])[0].version == record.version
    app.schedules.put("hello", greet.job("b"), every("1h"))
    assert seen == ["hello", "hello"]


def test_a_template_keeps_the_queue_of_its_schedule(app, greet):
    class Rush(Middleware):
        def create(self, jobs, call_next):
            call_next([job.replace(queue="fast") for job in jobs])

    app.use(Rush())
    with pytest.raises(MiddlewareError, match="queue or the priority of schedule 'hello'"):
        app.schedules.put("hello", greet.job("a"), every("1h"))
    assert app.schedules.list().items == []


def test_a_copy_with_other_arguments_passes_and_one_with_the_same_does_not_pass_twice(app, greet):
    app.use(Shifted())
    original = greet.enqueue("a").record
    inner = internals(app)
    same = run_copy(app.open(), inner.registry, inner.redaction, original, inner.new_id())
    other = run_copy(app.open(), inner.registry, inner.redaction, original, inner.new_id(), args=["b"])
    assert app.jobs.get(same).args == ["shifted", "a"]
    assert app.jobs.get(other).args == ["shifted", "b"]
    with app.running(scheduler=False):
        assert [app.jobs.get(name).result("20s") for name in (same, other)] == ["A", "B"]


@pytest.mark.parametrize("wrong", [{"queue": "no such\nname"}, {"priority": 10**9}])
def test_a_copy_gets_no_queue_and_no_priority_that_a_job_may_not_have(app, greet, wrong):
    original = greet.enqueue("a").record

    class Wrong(Middleware):
        def create(self, jobs, call_next):
            call_next([job.replace(**wrong) for job in jobs])

    app.use(Wrong())
    inner = internals(app)
    with pytest.raises(BadOption):
        run_copy(app.open(), inner.registry, inner.redaction, original, inner.new_id())
    assert [job.id for job in app.jobs.list().items] == [original.id]


def test_what_cannot_be_used_is_refused_where_it_is_registered(app):
    @app.task
    def plain() -> None: ...

    class Coroutine(Middleware):
        async def create(self, jobs, call_next): ...

    class Half(Middleware):
        def run(self, job, call_next):
            return call_next(job)

    app.use(tenants := Tenants())
    for wrong, words in [
        (Tenants, r"got the class Tenants; write Tenants\(\)"),
        (print, "a subclass of rota.Middleware"),
        (tenants, "is in use already"),
        (Coroutine(), r"create\(\) must be defined with `def`"),
    ]:
        with pytest.raises(BadOption, match=words):
            app.use(wrong)
    app.use(Half())  # there are plain functions alone
    with pytest.raises(BadOption, match=r"has run\(\) and no arun\(\), which wraps coroutine functions such as late"):

        @app.task(name="late")
        async def late() -> None: ...


class Tenantless(Middleware):
    """Needs a context that schedules and the command line do not have."""

    def create(self, *_):
        raise LookupError("no tenant")


def test_an_error_that_it_raises_keeps_which_middleware_raised_it_and_around_what(app, greet):
    app.use(Tenants())
    app.use(Tenantless())
    with pytest.raises(LookupError) as caught:
        greet.enqueue("a")
    said = str(error_of_middleware(caught.value))
    assert said.startswith("the middleware Tenantless raised LookupError: no tenant. ")
    assert "a job of task shop.greet; nothing was created" in said
    with pytest.raises(LookupError) as caught:
        app.schedules.put("nightly", greet.job("a"), every("1h"))
    assert "the template of schedule 'nightly' (task shop.greet)" in str(error_of_middleware(caught.value))


def test_an_error_of_the_store_is_not_one_of_the_middleware_that_it_passes(app, greet, monkeypatch):
    app.use(Tenants())

    def fail(*_):
        raise RuntimeError("a bug of the store")

    monkeypatch.setattr(app.open(), "add_jobs", fail)
    with pytest.raises(RuntimeError) as caught:
        greet.enqueue("a")
    assert error_of_middleware(caught.value) is None


def test_http_and_the_pages_say_which_middleware_raised(app, greet):
    app.use(Tenantless())
    secret = app.tokens.create("tester", role="operate").secret
    client, headers = TestClient(app.asgi()), {"Authorization": f"Bearer {secret}"}
    answer = client.post("/api/v1/jobs", json={"task": greet.name, "args": ["a"]}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "middleware_error")
    assert "Tenantless raised LookupError: no tenant" in answer.json()["error"]["message"]
    page = client.post(f"/catalog/{greet.name}", data={"arg.name": "a"}, headers=headers)
    assert page.status_code == 500
    assert "Tenantless raised LookupError: no tenant" in page.text
