"""Maps names of options in other job systems to their names in Rota, or to advice."""

from __future__ import annotations

_TRIGGER = "give the trigger first, as in schedule(cron('0 9 * * *')) or schedule(every('5m'))"
_OF_TASK = "that is an option of the task: put @app.task({name}=…) under @app.schedule(…)"
_ARGUMENTS = "arguments go to enqueue() or job()"
_NO_EXPIRY = "a job does not expire: let the task look at the time, or cancel the job"
_NO_RATE = (
    "Rota limits how many jobs run at once, not their rate: give the task a queue with a small worker.concurrency"
)

FOR_TASK = {
    "max_retries": "retries",
    "retry": "retries",
    "max_attempts": "retries",
    "autoretry_for": "retry_on",
    "retry_when": "retry_on",
    "throws": "give_up_on",
    "retry_backoff": "backoff",
    "retry_delay": "backoff",
    "default_retry_delay": "backoff",
    "min_backoff": "backoff",
    "time_limit": "timeout",
    "soft_time_limit": "timeout",
    "job_timeout": "timeout",
    "queue_name": "queue",
    "actor_name": "name",
    "ignore_result": "keep",
    "store_results": "keep",
    "lock": "unique",
    "expires": _NO_EXPIRY,
    "rate_limit": _NO_RATE,
}
FOR_REQUEST = {
    "countdown": "delay",
    "schedule_in": "delay",
    "enqueue_in": "delay",
    "eta": "at",
    "run_at": "at",
    "schedule_at": "at",
    "scheduled_at": "at",
    "max_retries": "retries",
    "time_limit": "timeout",
    "soft_time_limit": "timeout",
    "job_timeout": "timeout",
    "queue_name": "queue",
    "job_id": "key",
    "task_id": "key",
    "unique": "key",
    "queueing_lock": "key",
    "unique_for": "key_for",
    "connection": "tx",
    "session": "tx",
    "headers": "meta",
    "args": _ARGUMENTS,
    "kwargs": _ARGUMENTS,
    "expires": _NO_EXPIRY,
    "rate_limit": _NO_RATE,
}
FOR_SCHEDULE = {
    **dict.fromkeys(("cron", "crontab", "every", "interval", "seconds", "minutes", "hours", "schedule"), _TRIGGER),
    **dict.fromkeys(("retries", "backoff", "timeout", "unique", "keep", "executor", "memory"), _OF_TASK),
    "max_retries": _OF_TASK.replace("{name}", "retries"),
    "timezone": "tz",
    "zone": "tz",
    "max_instances": "overlap",
    "coalesce": "catchup",
    "misfire_grace_time": "grace",
    "start_date": "start",
    "start_time": "start",
    "end_date": "end",
    "end_time": "end",
    "repeat": "max_runs",
    "name": "id",
    "args": "put the arguments into the call: app.schedules.put('id', task.job(…), trigger)",
    "kwargs": "put the arguments into the call: app.schedules.put('id', task.job(…), trigger)",
}
FOR_APP = {
    **dict.fromkeys(("url", "store_url", "broker", "broker_url", "backend", "redis_url", "database"), "store"),
    "timezone": "tz",
    "prefix": "namespace",
    "schema": "namespace",
}

FOR_START = {
    **dict.fromkeys(("workers", "threads", "pool", "max_workers"), "concurrency"),
    "queue": "queues",
    "timeout": "drain",
    "processes": "a node in this process has one; `rota run --processes` starts several",
}
FOR_VERBS = {
    **dict.fromkeys(("status", "states", "statuses"), "state"),
    **dict.fromkeys(("task_name", "name"), "task"),
    **dict.fromkeys(("schedule_id", "schedule_name"), "schedule"),
    **dict.fromkeys(("offset", "page", "after", "start_after"), "cursor"),
    **dict.fromkeys(("page_size", "count", "n", "size"), "limit"),
    **dict.fromkeys(("timezone", "zone"), "tz"),
    **dict.fromkeys(("note", "comment", "why", "message"), "reason"),
    **dict.fromkeys(("user", "who", "author", "actor"), "by"),
    **dict.fromkeys(("version", "etag", "if_match"), "expect_version"),
    **dict.fromkeys(("to", "before", "end"), "until"),
    **dict.fromkeys(("expires", "expires_in", "timeout"), "ttl"),
    "from_": "since",
}
