"""Defines tasks: Python functions under a name, with their options; and the requests to run them.

A task knows the model, not the store: the app passes in the sender that accepts its requests.
"""

from __future__ import annotations

import inspect
import sys
from contextlib import contextmanager
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NamedTuple,
    Never,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    overload,
)

from msgspec import Struct

from rota.errors import BadOption, DuplicateName, UnknownTask
from rota.keywords import refuse_unknown
from rota.model.jobs.lossless import SCALARS
from rota.model.jobs.payload import Call, pack_call
from rota.model.jobs.retry import MOST_RETRIES, Backoff, RetryPolicy
from rota.model.micros import fine_span_of, optional_instant
from rota.model.names import check_key, check_name, check_priority
from rota.model.option_names import FOR_REQUEST, FOR_TASK
from rota.model.secrets.redaction import DEFAULT
from rota.model.sizes import bytes_of
from rota.sentences import sentence
from rota.tasks.arguments import Signature

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence
    from datetime import datetime, timedelta

    from rota.model.jobs.codecs import Codecs
    from rota.model.secrets.redaction import Redaction
    from rota.tasks.job import Job
    from rota.tasks.middleware import Middleware

P = ParamSpec("P")
R = TypeVar("R")

ExecutorName = Literal["thread", "process"]


class TaskOptions(NamedTuple):
    """How a task runs, unless a request overrides it."""

    queue: str = "default"
    priority: int = 0
    retry: RetryPolicy = RetryPolicy()
    timeout: int | None = None
    keep: bool = True  # False: removed once it has succeeded
    unique: bool = False  # one live job per task and arguments
    unique_for: int = 0  # … and for this long after its creation
    description: str = ""
    executor: ExecutorName = "thread"  # of plain functions; coroutines always run on the loop
    memory: int | None = None  # bytes that its process may use; then it is killed


class Overrides(NamedTuple):
    """The options of one request; None leaves an option to the task."""

    delay: int = 0
    at: int | None = None
    priority: int | None = None
    queue: str | None = None
    key: str | None = None
    key_for: int = 0
    retries: int | None = None
    timeout: int | None = None
    meta: dict[str, Any] | None = None
    transaction: Any = None  # the caller's own: the job exists if and when it commits


NOTHING_ELSE = Overrides()


class Request(Struct, frozen=True, gc=False):
    """A call that was not sent yet: `greet.job("world")`."""

    task: str
    payload: bytes
    options: TaskOptions
    overrides: Overrides = Overrides()
    unique_key: str | None = None  # of the task and its arguments, if those must be unique

    def __repr__(self) -> str:
        call = DEFAULT.call(self.payload)
        words = [*map(repr, call.args), *(f"{name}={value!r}" for name, value in call.kwargs.items())]
        return f"<request {self.task}({', '.join(words)})>"

    @property
    def queue(self) -> str:
        """The queue that its job will wait in."""
        return self.overrides.queue or self.options.queue

    @property
    def priority(self) -> int:
        """From -100 to 100, higher first."""
        return self.options.priority if self.overrides.priority is None else self.overrides.priority

    @property
    def key(self) -> str | None:
        """The key that it was given, or the one made from its arguments."""
        return self.unique_key if self.overrides.key is None else self.overrides.key

    @property
    def key_for(self) -> int:
        """How long its key holds after its creation, even if it ends before (microseconds)."""
        return self.overrides.key_for or (self.options.unique_for if self.overrides.key is None else 0)


USING = ("delay", "at", "priority", "queue", "key", "key_for", "retries", "timeout", "meta", "tx")


class Sender(Protocol):
    """Accepts requests: the app."""

    @property
    def redaction(self) -> Redaction:
        """The rule for hiding arguments from readers."""

    @property
    def checks_types(self) -> bool:
        """Whether arguments and results must fit plain hints."""

    def send(self, requests: Sequence[Request]) -> list[Job[Any]]: ...

    async def asend(self, requests: Sequence[Request]) -> list[Job[Any]]: ...


class Configured(Generic[P, R]):
    """A task with other options for the requests made through it: `greet.using(delay="5m")`."""

    def __init__(self, task: Task[P, R], overrides: Overrides) -> None:
        self._task = task
        self._overrides = overrides

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> Request:
        """The request, not sent yet: for enqueue_many and schedules."""
        return self._task.request(args, kwargs, self._overrides)

    def declared(self, *args: Any) -> Request:
        """The request of a declaration. Its arguments are names, which the settings never hide."""
        return self._task.request(args, {}, self._overrides, redact=())

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Send the request; the job is accepted when this returns."""
        return self._task.sender.send([self._task.request(args, kwargs, self._overrides)])[0]

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """As enqueue, from a coroutine."""
        return (await self._task.sender.asend([self._task.request(args, kwargs, self._overrides)]))[0]


class Task(Generic[P, R]):
    """A function under a name. Calling it runs it here; enqueue() has a worker run it."""

    def __init__(
        self,
        function: Callable[P, Any],
        name: str,
        options: TaskOptions,
        sender: Sender,
        codecs: Codecs | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        if options.executor == "process":
            check_findable(function, name)
        self.function = function
        self.name = check_name("task", name)
        self.options = options
        self.sender = sender
        self.middleware = middleware  # the app's own list: middleware that is added to it later applies
        self.is_async = inspect.iscoroutinefunction(function)
        self.signature = Signature(function, name, codecs)
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", name)
        self.__wrapped__ = function

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self.function(*args, **kwargs)
        return result

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Have a worker run it; the job is accepted when this returns."""
        return self.sender.send([self.request(args, kwargs, NOTHING_ELSE)])[0]

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """As enqueue, from a coroutine."""
        return (await self.sender.asend([self.request(args, kwargs, NOTHING_ELSE)]))[0]

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> Request:
        """The request, not sent yet: for enqueue_many and schedules."""
        return self.request(args, kwargs, NOTHING_ELSE)

    def using(
        self,
        *,
        delay: str | timedelta | None = None,
        at: datetime | None = None,
        priority: int | str | None = None,
        queue: str | None = None,
        key: str | None = None,
        key_for: str | timedelta | None = None,
        retries: int | None = None,
        timeout: str | timedelta | None = None,
        meta: dict[str, Any] | None = None,
        tx: object = None,
        **unknown: Never,
    ) -> Configured[P, R]:
        """This task with other options for one request: `greet.using(delay="5m").enqueue("world")`.

        `tx` is the caller's own connection: the job exists if and when its transaction commits.
        """
        if unknown:
            refuse_unknown("using()", unknown, USING, FOR_REQUEST)
        if delay is not None and at is not None:
            raise BadOption(
                sentence("option.delay_or_at", "give delay= or at=, not both: each says when the job may run")
            )
        overrides = Overrides(
            delay=fine_span_of(delay) if delay is not None else 0,
            at=optional_instant("at", at),
            priority=check_priority(priority) if priority is not None else None,
            queue=check_name("queue", queue) if queue is not None else None,
            key=check_key(key) if key is not None else None,
            key_for=fine_span_of(key_for, least=1) if key_for is not None else 0,
            retries=check_retries(retries) if retries is not None else None,
            timeout=fine_span_of(timeout, least=1) if timeout is not None else None,
            meta=meta,
            transaction=tx,
        )
        return Configured(self, overrides)

    def request(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        overrides: Overrides,
        *,
        redact: tuple[str, ...] | None = None,
    ) -> Request:
        """The request for this call; refuses arguments that the function or JSON would not accept.

        `redact` replaces the names of the settings, which are not read while an app is being declared.
        """
        signature = self.signature
        signature.check(args, kwargs)
        if redact is None and (args or kwargs) and self.sender.checks_types:
            signature.check_types(args, kwargs)
        extra = redact if redact is not None else self.sender.redaction.extra if args or kwargs else ()
        secrets = [] if signature.shows_all and not extra else signature.secrets(args, kwargs, extra)
        call = Call(
            args=list(args),
            kwargs=kwargs,
            meta=overrides.meta or {},
            retries=overrides.retries,
            timeout=overrides.timeout,
            secrets=secrets,
        )
        payload = pack_call(call, what=self.name, encode=signature.encode)
        if not (SCALARS.issuperset(map(type, args)) and SCALARS.issuperset(map(type, kwargs.values()))):
            signature.refuse_changed(args, kwargs)  # text and numbers come back as they are
        return Request(self.name, payload, self.options, overrides, self._unique_key(args, kwargs))

    def _unique_key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """The same key for the same arguments, however the call passes them."""
        if not self.options.unique:
            return None
        digest = blake2b(self.signature.canonical(args, kwargs), digest_size=12).hexdigest()
        return f"{self.name[:200]}:{digest}"

    def __repr__(self) -> str:
        return f"<task {self.name}>"


class AsyncTask(Task[P, R]):
    """A coroutine function under a name: it runs on the worker's event loop."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:  # type: ignore[override]  # awaited
        result: Coroutine[Any, Any, R] = self.function(*args, **kwargs)
        return result


def request_during_import(task: Task[Any, Any]) -> Request:
    """A call without arguments. The task's type hints are not read: while its module is imported, they may name types
    that do not exist yet."""
    task.signature.check((), {})
    return Request(task.name, pack_call(Call(), what=task.name), task.options)


class TaskKeywords(TypedDict, total=False):
    """The options of a task."""

    name: str  # by default, the module and name of the function
    queue: str  # the queue of its jobs
    priority: int | str  # from -100 to 100, or "low", "normal", "high"; higher runs first
    retries: int  # how many times a failed attempt is tried again
    backoff: str | timedelta | Backoff | None  # the delays between attempts; None: about 2 s, 6 s, 18 s
    retry_on: tuple[type[BaseException], ...]  # only these errors are retried
    give_up_on: tuple[type[BaseException], ...]  # these errors are never retried
    timeout: str | timedelta | None  # how long one attempt may run; None: no limit
    unique: bool | str | timedelta  # at most one live job for the same arguments; a span: at most one within it
    keep: bool  # False removes a job when it has succeeded
    description: str  # a text for people
    executor: ExecutorName  # "thread", or "process" for a child process; coroutines run on the event loop
    memory: str | int | None  # the most that an attempt in a child process may use


class Decorator(Protocol):
    """The result of `@app.task(...)` and `@app.schedule(...)`: the function's own parameters stay known."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...


class Registry:
    """The tasks of one app, by name."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task[Any, Any]] = {}

    def add(self, task: Task[Any, Any]) -> None:
        if self._tasks.setdefault(task.name, task) is not task:  # one step, even if other threads register
            raise DuplicateName(f"a task named '{task.name}' is registered already; give one of them another name=")

    @contextmanager
    def task_of(self, function: Any, add: Callable[[Any, TaskKeywords], Task[Any, Any]]) -> Iterator[Task[Any, Any]]:
        """The task to declare something with. A task that is added for it is removed if the declaration fails."""
        if isinstance(function, Task):
            yield function
            return
        task = add(function, {})
        try:
            yield task
        except BaseException:
            del self._tasks[task.name]
            raise

    def find(self, name: str) -> Task[Any, Any] | None:
        return self._tasks.get(name)

    def get(self, name: str) -> Task[Any, Any]:
        """The task of that name. A bare function name is enough if only one task ends with it."""
        task = self._tasks.get(name)
        if task is not None:
            return task
        endings = [known for known in self._tasks if known.endswith(f".{name}")]
        if len(endings) == 1:
            return self._tasks[endings[0]]
        known = ", ".join(sorted(self._tasks)) or "none"
        raise UnknownTask(
            sentence(
                "missing.task",
                "no task is named '{name}'{meant}; known are {known}",
                name=name,
                meant=self._meant(name),
                known=known,
            )
        )

    def _meant(self, name: str) -> str:
        """The task with the name nearest to a misspelt one, as a question."""
        names = {word: known for known in self._tasks for word in (known, known.rpartition(".")[2])}
        close = get_close_matches(name, names, 1)
        return f" (did you mean {names[close[0]]}?)" if close and close[0] != name else ""

    def parameters_of(self, name: str) -> tuple[str, ...]:
        """The names of a task's parameters; none if this app does not have the task."""
        task = self.find(name)
        return () if task is None else tuple(task.signature.parameters)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._tasks))

    def __iter__(self) -> Iterator[Task[Any, Any]]:
        return iter(self._tasks.values())

    def __len__(self) -> int:
        return len(self._tasks)


def default_name(function: Callable[..., Any]) -> str:
    """`module.function`; a script that is run as such is called by its file's stem, as workers load it."""
    module = getattr(function, "__module__", None)
    if module is None or not hasattr(function, "__qualname__"):
        raise BadOption(f"{function!r} has no name of its own; give it one with name=")
    if module == "__main__":
        file = getattr(sys.modules["__main__"], "__file__", None)
        module = Path(file).stem if file and not file.startswith("<") else "main"  # "<stdin>" is no file
    return f"{module}.{function.__qualname__.replace('<locals>.', '')}"


def make_options(
    *,
    name: str = "",  # noqa: ARG001 - the app's concern
    queue: str = "default",
    priority: int | str = 0,
    retries: int = 3,
    backoff: str | timedelta | Backoff | None = None,
    retry_on: tuple[type[BaseException], ...] = (Exception,),
    give_up_on: tuple[type[BaseException], ...] = (),
    timeout: str | timedelta | None = None,
    unique: bool | str | timedelta = False,
    keep: bool = True,
    description: str = "",
    executor: ExecutorName = "thread",
    memory: str | int | None = None,
    **unknown: Never,
) -> TaskOptions:
    """Check a task's options as they are declared."""
    refuse_unknown("a task", unknown, TaskKeywords.__annotations__, FOR_TASK)
    if executor not in {"thread", "process"}:
        raise BadOption(f"executor={executor!r} must be 'thread' or 'process'; a coroutine function needs none")
    if memory is not None and executor != "process":
        raise BadOption(f"memory={memory!r} caps a process of its own; add executor='process'")
    period = None if isinstance(unique, bool) else unique
    return TaskOptions(
        queue=check_name("queue", queue),
        priority=check_priority(priority),
        retry=RetryPolicy(
            check_retries(retries), _backoff(backoff), _errors("give_up_on", give_up_on), _errors("retry_on", retry_on)
        ),
        timeout=fine_span_of(timeout, least=1) if timeout is not None else None,
        keep=keep,
        unique=bool(unique),
        unique_for=fine_span_of(period, least=1) if period is not None else 0,
        description=description,
        executor=executor,
        memory=bytes_of(memory) if memory is not None else None,
    )


def _errors(name: str, given: object) -> tuple[type[BaseException], ...]:
    """The classes of errors that an option names."""
    found = tuple(given) if isinstance(given, tuple | list | set | frozenset) else (given,)
    for one in found:
        if not (isinstance(one, type) and issubclass(one, BaseException)):
            raise BadOption(f"{name}={given!r} must be classes of exceptions, such as (KeyError, ValueError)")
    return found


def _backoff(given: str | timedelta | Backoff | None) -> Backoff:
    if isinstance(given, Backoff):
        return given
    return Backoff() if given is None else Backoff(fine_span_of(given, least=1))


def check_findable(function: Callable[..., Any], name: str) -> None:
    """Refuse a function that a child process cannot run: it imports the task's module and must find the task there."""
    if inspect.iscoroutinefunction(function):
        raise BadOption(f"{name} is a coroutine function, which runs on the worker's loop; leave executor= out")
    place = getattr(function, "__qualname__", None)
    if place is None or getattr(function, "__module__", None) is None or "<" in place:
        raise BadOption(
            f"{name} cannot have executor='process': a process imports the task's module and looks for it there, "
            f"and {place or repr(function)} is made at run time; define it with def at a module's top level"
        )


def check_retries(retries: object) -> int:
    if isinstance(retries, bool) or not isinstance(retries, int) or not 0 <= retries <= MOST_RETRIES:
        raise BadOption(f"retries={retries!r} must be a whole number from 0 to {MOST_RETRIES}")
    return retries
