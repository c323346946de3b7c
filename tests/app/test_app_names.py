"""Names of tasks: where they come from, and which are refused."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading

import pytest

from app.steps import work
from rota import App, BadName, BadOption, DuplicateName, UnknownTask
from rota.app import internals


@pytest.fixture
def app():
    app = App("memory://")
    yield app
    app.close()


def charge(amount: int = 0) -> int:
    """Charges a card.

    At once.
    """
    return amount


async def refund(amount: int = 0) -> int:
    return amount


def test_a_task_is_called_by_its_module_and_function(app):
    task = app.task(charge)
    assert task.name == "test_app_names.charge"
    assert (task.__name__, task.__wrapped__, task.__doc__) == ("charge", charge, charge.__doc__)
    assert task.options.description == "Charges a card."
    assert repr(task) == "<task test_app_names.charge>"
    assert not task.is_async
    assert app.task(refund).is_async


def test_a_function_inside_another_is_called_by_both(app):
    @app.task
    def inner() -> None: ...

    assert inner.name.endswith(".test_a_function_inside_another_is_called_by_both.inner")


def test_a_script_is_called_by_its_file(tmp_path):
    script = tmp_path / "billing.py"
    script.write_text(
        "from rota import App, every\n"
        "from rota.app import internals\n"
        "app = App('memory://')\n"
        "@app.task\n"
        "def charge(): ...\n"
        "@app.schedule(every('1h'))\n"
        "def tick(): ...\n"
        "if __name__ == '__main__':\n"
        "    print(*internals(app).registry.names(), *internals(app).declared)\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=240)
    assert ran.stdout.split() == ["billing.charge", "billing.tick", "tick"]


def test_code_from_a_pipe_has_a_name_too():
    code = "from rota import App\napp = App('memory://')\n@app.task\ndef charge(): ...\nprint(charge.name)"
    command = [sys.executable, "-"]
    ran = subprocess.run(command, input=code, capture_output=True, text=True, check=True, timeout=240)
    assert ran.stdout.strip() == "main.charge"


def test_a_name_is_registered_once(app):
    app.task(charge)
    with pytest.raises(DuplicateName, match=r"'test_app_names.charge' is registered already; .* another name="):
        app.task(charge)
    again = app.task(name="billing.charge")(charge)
    assert internals(app).registry.names() == ("billing.charge", "test_app_names.charge")
    assert again.name == "billing.charge"


def test_a_lambda_needs_a_name(app):
    with pytest.raises(BadOption, match="lambda"):
        app.task(lambda: None)
    task = app.task(name="quick")(lambda: 5)
    job = task.enqueue()
    work(app)
    assert job.result() == 5


@pytest.mark.parametrize("function", [charge, refund])
def test_a_partial_needs_a_name(app, function):
    fixed = functools.partial(function, 5)
    with pytest.raises(BadOption, match="has no name of its own; give it one with name="):
        app.task(fixed)
    task = app.task(name="charge-5")(fixed)
    job = task.enqueue()
    work(app)
    assert job.result() == 5


def test_a_callable_object_needs_a_name(app):
    class Charger:
        def __call__(self, amount: int) -> int:
            return amount * 2

    with pytest.raises(BadOption, match="name="):
        app.task(Charger())
    job = app.task(name="charger")(Charger()).enqueue(4)
    work(app)
    assert job.result() == 8


@pytest.mark.parametrize("what", [5, "charge", None, int, [charge]])
def test_what_is_no_function_is_refused(app, what):
    with pytest.raises(BadOption, match="decorates a function"):
        app.task(name="x")(what)


def test_a_task_is_not_made_a_task_again(app):
    with pytest.raises(BadOption, match="decorates a function"):
        app.task(app.task(charge))


@pytest.mark.parametrize("name", ["has space", "ünïcode", "a/b", "x" * 128, "new\nline", "semi;colon"])
def test_a_name_has_plain_characters(app, name):
    with pytest.raises(BadName, match=r"task name .*: use 1 to 127 of the characters"):
        app.task(name=name)(charge)


def test_a_bare_function_name_will_do_where_only_one_task_has_it(app):
    task = app.task(charge)
    assert internals(app).registry.get("charge") is task
    app.task(name="other.charge")(charge)
    with pytest.raises(UnknownTask, match=r"no task is named 'charge'; known are other.charge, test_app_names.charge"):
        internals(app).registry.get("charge")


def test_an_app_says_what_it_has(app):
    app.task(charge)
    assert repr(app) == "<app app: 1 tasks, 0 schedules>"
    assert [task.name for task in internals(app).registry] == ["test_app_names.charge"]


def test_tasks_may_be_registered_from_many_threads():
    app = App("memory://")
    gate = threading.Barrier(8)

    def register(number: int) -> None:
        gate.wait()
        for index in range(50):
            app.task(len, name=f"task-{number}-{index}")

    threads = [threading.Thread(target=register, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(internals(app).registry) == 400


def test_one_name_registered_from_many_threads_is_taken_once():
    app = App("memory://")
    gate = threading.Barrier(8)
    refused: list[str] = []

    def register() -> None:
        gate.wait()
        try:
            app.task(len, name="same")
        except DuplicateName as err:
            refused.append(str(err))

    threads = [threading.Thread(target=register) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7


def test_a_misspelt_task_is_answered_with_the_one_that_is_meant():
    app = App("memory://")

    @app.task(name="shop.greet")
    def greet() -> None: ...

    with pytest.raises(UnknownTask, match=r"no task is named 'gret' \(did you mean shop\.greet\?\)"):
        internals(app).registry.get("gret")
