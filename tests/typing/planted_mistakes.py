"""Ten mistakes, each on a line that says so: every type checker must report exactly these lines."""

from __future__ import annotations

from typing import Annotated

from rota import App, Secret, every

app = App("memory://")
app.codec(bytearray, encode=bytearray.upper, decode=str)  # mistake: decodes to another type


@app.task
def greet(name: str, times: int = 1) -> str:
    return name * times


@app.task
def check(pin: Annotated[str, Secret]) -> None:
    print(pin)  # noqa: T201


check.enqueue(5)  # mistake: wrong type of a marked parameter
greet.enqueue(5)  # mistake: wrong type
greet.enqueue()  # mistake: missing
greet.enqueue("a", 2, 3)  # mistake: extra
greet.enqueue("a", tims=2)  # mistake: unknown keyword
greet.using(priority=5).enqueue("a", "b")  # mistake: wrong type through using
greet.using(countdown=5)  # mistake: wrong name of option of one request


@app.task(retries="three")  # mistake: wrong type of option
def send() -> None: ...


@app.schedule(every("1h"), overlaps="skip")  # mistake: wrong name of option
def tick() -> None: ...
