"""Reads the jobs of rq-scheduler from Redis. RQ is not needed, and nothing of a job's pickled data is executed."""

from __future__ import annotations

import io
import pickle
import pickletools
import zlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from rota.errors import BadStoreUrl, RotaError
from rota.importers.cron_rules import runs_of_cron
from rota.importers.crontab import MACROS
from rota.importers.field_sets import (
    HOUR,
    MINUTE,
    MONTH,
    MONTH_DAY,
    MONTHS,
    WEEKDAYS,
    day_texts,
    field_text,
    values_of,
    weekdays_of,
)
from rota.importers.found import SHOWN_RUNS, Found, Item, UnsupportedItem, Wanted, distinct
from rota.importers.naming import id_of
from rota.triggers import cron, every, once

if TYPE_CHECKING:
    from rota.importers.found import Tasks
    from rota.triggers import Trigger

SCHEDULED = "rq:scheduler:scheduled_jobs"
KEYS = {"cron_string", "use_local_timezone", "interval", "repeat"}  # of its meta, by rq-scheduler
SAFE = {("datetime", name) for name in ("datetime", "date", "time", "timedelta", "timezone")} | {
    ("builtins", name) for name in ("set", "frozenset", "complex")
}
LARGEST = 16_000_000  # bytes of one job's data
SLOTS = {"PUT", "BINPUT", "LONG_BINPUT"}  # what says a position in a pickle's table


class RqJob(Found, frozen=True, kw_only=True):
    """One scheduled job."""

    next_at: int  # seconds since the epoch
    function: str = ""
    args: list[Any] = []  # noqa: RUF012 - msgspec copies the defaults of its structs
    kwargs: dict[str, Any] = {}  # noqa: RUF012 - likewise
    queue: str = ""
    cron_string: str = ""
    interval: int | None = None
    repeat: int | None = None  # how many runs are left
    left_out: list[str] = []  # noqa: RUF012 - likewise; what has no counterpart
    problem: str = ""  # why its data cannot be read


class _Values(pickle.Unpickler):
    """Reads plain values. A pickle that names any other class or function is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in SAFE:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"the arguments hold {module}.{name}, which JSON cannot keep")


def _unpickled(data: bytes) -> Any:
    """The values of a pickle. One that asks for a table larger than its own data, to fill the memory, is refused."""
    for opcode, said, _ in pickletools.genops(data):
        if opcode.name in SLOTS and isinstance(said, int) and said > len(data):
            raise pickle.UnpicklingError("the pickle was made by no library")
    return _Values(io.BytesIO(data)).load()


def read_redis(url: str, key: str = SCHEDULED) -> list[RqJob]:
    """The scheduled jobs, in the order of their next times."""
    try:
        import redis  # noqa: PLC0415 - an extra
    except ImportError as err:
        raise BadStoreUrl("Redis needs its client; install rota[redis]") from err
    try:
        with redis.Redis.from_url(url) as client:
            found: Any = client.zrange(key, 0, -1, withscores=True)
            return [_job(name.decode(errors="replace"), at, client.hgetall(b"rq:job:" + name)) for name, at in found]
    except (redis.RedisError, ValueError) as err:
        raise BadStoreUrl(f"the jobs of rq-scheduler cannot be read: {err}") from err


def _job(name: str, at: float, said: dict[bytes, bytes]) -> RqJob:
    """One job. Whatever its data holds, the others are still read."""
    fields = {field.decode(errors="replace"): value for field, value in said.items()}
    text = fields.get("description", b"").decode(errors="replace") or name
    if not fields:
        return RqJob(name=name, old_text=name, next_at=0, problem="its job is no longer in Redis")
    try:
        call = _unpickled(_plain(fields["data"]))
        meta = _unpickled(_plain(fields["meta"])) if fields.get("meta") else {}
        return _read(name, at, fields, call, meta)
    except Exception as err:  # noqa: BLE001 - a pickle of another system may fail in any way
        return RqJob(name=name, old_text=text, next_at=0, problem=f"its data cannot be read: {_printable(err)}")


def _read(name: str, at: float, fields: dict[str, bytes], call: Any, meta: dict[Any, Any]) -> RqJob:
    function, instance, args, kwargs = call
    rule = meta.get("cron_string") or (f"every {meta['interval']} s" if meta.get("interval") else "once")
    found = RqJob(
        name=name,
        old_text=f"{rule} {function}",
        next_at=int(at),
        function=function,
        args=list(args),
        kwargs=dict(kwargs),
        queue=fields.get("origin", b"").decode(),
        cron_string=meta.get("cron_string") or "",
        interval=meta.get("interval"),
        repeat=meta.get("repeat"),
        left_out=[*_options(fields), *(f"meta {key!r}" for key in sorted(set(meta) - KEYS, key=str))],
        problem="" if instance is None else "it calls a method of an object, and a task of Rota is a function",
    )
    _check(found)
    return found


def _check(job: RqJob) -> None:
    """Refuse values of other types, and times and spans that Python does not have: the translation counts on them."""
    is_typed = isinstance(job.function, str) and isinstance(job.cron_string, str)
    numbers = (job.interval, job.repeat)
    if not is_typed or any(isinstance(one, bool) or not isinstance(one, int | float | None) for one in numbers):
        raise ValueError("its function, rule, interval or repeat has another type than rq-scheduler writes")
    datetime.fromtimestamp(job.next_at, UTC) + timedelta(seconds=SHOWN_RUNS * (job.interval or 0))
    job.function.encode()


def _printable(err: Exception) -> str:
    return str(err).encode(errors="replace").decode()


def _options(fields: dict[str, bytes]) -> list[str]:
    """What a job says beside its call."""
    names = ("timeout", "success_callback_name", "failure_callback_name", "stopped_callback_name")
    return [f"{name}={fields[name].decode(errors='replace')}" for name in names if fields.get(name)]


def _plain(data: bytes) -> bytes:
    reader = zlib.decompressobj()
    try:
        plain = reader.decompress(data, LARGEST)
    except zlib.error:
        return data
    if reader.unconsumed_tail:
        raise ValueError(f"it is larger than {LARGEST:,} bytes")
    return plain


def translate_rq(job: RqJob, tz: str, now: datetime) -> Wanted:
    """The schedule of one job."""
    if job.problem:
        raise UnsupportedItem(job.problem)
    try:
        trigger = _trigger(job)
    except RotaError as err:
        raise UnsupportedItem(str(err)) from err
    said = {
        "queue": job.queue or None,
        "max_runs": None if job.repeat is None else max(1, job.repeat),
        "start": _start(job, now),
    }
    given = {name: value for name, value in said.items() if value is not None}
    return Wanted(
        task=job.function,
        trigger=trigger,
        args=job.args,
        kwargs=job.kwargs,
        options={"tz": _zone(job, tz), "overlap": "allow", "catchup": "latest", **given},
        warnings=tuple(f"{one} is left out; say it at the task" for one in job.left_out),
    )


def _start(job: RqJob, now: datetime) -> datetime | None:
    """When an interval begins, if its first run is further away than one interval."""
    at = datetime.fromtimestamp(job.next_at, UTC)
    return at if job.interval and at > now + timedelta(seconds=job.interval) else None


def _zone(job: RqJob, tz: str) -> str:
    """rq-scheduler reads cron text by the clock of its machine, whatever `use_local_timezone` says. Old versions may
    read it in UTC. The next time in Redis tells which of the two it was."""
    if not job.cron_string:
        return "UTC"
    before = datetime.fromtimestamp(job.next_at - 1, UTC)
    rule = cron_of(job.cron_string)
    is_its = [rule.bound(zone).next_after(before) == before + timedelta(seconds=1) for zone in (tz, "UTC")]
    return "UTC" if is_its == [False, True] else tz


def cron_of(text: str) -> Trigger:
    """The rule of rq-scheduler's cron text: five fields, six with a year at the end, seven with seconds at the front.
    All fields must fit."""
    words = MACROS.get(text.lower(), text).lower().split()
    if len(words) not in {5, 6, 7}:
        raise UnsupportedItem(f"{text!r} has {len(words)} fields, and rq-scheduler's cron text has five to seven")
    second = words[0] if len(words) == 7 else "0"
    minute, hour, day, month, weekday, *year = words[1:] if len(words) == 7 else words
    if year not in ([], ["*"]):
        raise UnsupportedItem(f"year {year[0]}: Rota's cron has no such field; set the end of the schedule instead")
    month_day, day_of_week = _days("*" if day == "?" else day, "*" if weekday == "?" else weekday)
    fields = [
        field_text(values_of(said, bounds, names), bounds, said)
        for said, bounds, names in ((minute, MINUTE, {}), (hour, HOUR, {}), (month, MONTH, MONTHS))
    ]
    whole = f"{fields[0]} {fields[1]} {month_day} {fields[2]} {day_of_week}"
    return cron(whole if second == "0" else f"{field_text(values_of(second, MINUTE), MINUTE, second)} {whole}")


def _days(day: str, weekday: str) -> tuple[str, str]:
    """Both day fields. `l` is the last day of the month, `l5` the last Friday."""
    if day == "l" and weekday == "*":
        return "L", "*"
    if weekday[:1] == "l" and weekday[1:].isdigit() and day == "*":
        return "*", f"{WEEKDAYS[int(weekday[1:]) % 7]}L"
    if "l" in {day, weekday[:1]}:
        raise UnsupportedItem(f"day {day} and weekday {weekday}: Rota's cron cannot say both at once")
    days = values_of(day, MONTH_DAY)
    return day_texts(field_text(days, MONTH_DAY, day), days, weekdays_of(weekday))


def _trigger(job: RqJob) -> Trigger:
    at = datetime.fromtimestamp(job.next_at, UTC)
    if job.cron_string:
        return cron_of(job.cron_string)
    return once(at) if job.interval is None else every(timedelta(seconds=job.interval), start=_anchor(job))


def _anchor(job: RqJob) -> datetime:
    """The first second of the interval after the epoch: it is the same at every import, while the next time moves."""
    return datetime.fromtimestamp(job.next_at % job.interval if job.interval else job.next_at, UTC)


def rq_items(jobs: list[RqJob], tasks: Tasks, *, tz: str, prefix: str, now: datetime) -> list[Item]:
    ids = distinct(id_of(job.function or job.name, prefix) for job in jobs)
    return [_item(name, job, tasks, tz, now) for name, job in zip(ids, jobs, strict=True)]


def _item(name: str, job: RqJob, tasks: Tasks, tz: str, now: datetime) -> Item:
    try:
        spec, warnings = tasks.spec(translate_rq(job, tz, now), tz)
    except UnsupportedItem as err:
        return Item(id=name, name=job.name, old_text=job.old_text, reason=str(err))
    runs = _old_runs(job, tz, now)
    return Item(id=name, name=job.name, old_text=job.old_text, spec=spec, warnings=warnings, old_runs=runs)


def _old_runs(job: RqJob, tz: str, now: datetime) -> tuple[datetime, ...] | None:
    """The next time is in Redis. Intervals are added to it, and cron text continues from it."""
    at = datetime.fromtimestamp(job.next_at, UTC)
    if job.cron_string:
        zone = _zone(job, tz)
        rest = runs_of_cron(job.cron_string, zone, max(at, now), SHOWN_RUNS, joins_days=all)
        first = (at.astimezone(ZoneInfo(zone)),) if at > now else ()
        return None if rest is None else (*first, *rest)[:SHOWN_RUNS]
    count = 1 if job.interval is None else SHOWN_RUNS if job.repeat is None else min(SHOWN_RUNS, max(1, job.repeat))
    return tuple(datetime.fromtimestamp(job.next_at + n * (job.interval or 0), UTC) for n in range(count))
