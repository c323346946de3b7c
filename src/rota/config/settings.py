"""Defines all settings: each key's type, range, default and meaning, in one place.

The keys of rota.yaml, the ROTA_* variables, the errors about them and the reference are all made from these classes.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from msgspec import Struct

from rota.config.kinds import (
    Choice,
    Duration,
    Hidden,
    Hosts,
    Kind,
    MailAddress,
    Namespace,
    Networks,
    Password,
    Queues,
    Secret,
    Size,
    Target,
    Text,
    Url,
    WebhookSecret,
    WebUrl,
    Whole,
    Zone,
)
from rota.model.micros import SECOND
from rota.store.contract import Retention

if TYPE_CHECKING:
    from collections.abc import Mapping

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
CHECKS = ("dev", "always", "never")
TLS = ("starttls", "tls", "none")

_KEPT = Retention()


class Says(Struct, frozen=True):
    """The description of a setting: its kind, its meaning, and the value that applies if it is not set."""

    kind: Kind
    meaning: str
    otherwise: str = ""  # the value that applies if the default is None
    example: str = ""  # likewise, for a file to begin with


class WorkerPart(Struct, frozen=True, kw_only=True):
    """How the workers of this project work."""

    concurrency: Annotated[int, Says(Whole(1, 10_000), "Jobs that a worker runs at once.")] = 16
    queues: Annotated[
        tuple[str, ...] | None,
        Says(
            Queues(),
            "The queues that a worker takes jobs from.",
            "`rota run`: those of the app's tasks and schedules; `app.start()`: `default`",
            "[default, mail]",
        ),
    ] = None
    processes: Annotated[
        int,
        Says(
            Whole(0, 256), "Worker processes of `rota run` and `rota worker`, under a parent; 0: one without a parent."
        ),
    ] = 1
    recycle_jobs: Annotated[
        int | None,
        Says(
            Whole(1, 1_000_000_000), 'A child of `executor="process"` is replaced after so many jobs.', "1000", "1000"
        ),
    ] = None
    recycle_age: Annotated[
        int | None, Says(Duration(), 'A child of `executor="process"` is replaced at this age.', "1h", "1h")
    ] = None
    recycle_memory: Annotated[
        int | None,
        Says(
            Size(),
            'A child of `executor="process"`, or a worker process, is replaced once it is larger.',
            "children: 512M; worker processes: no limit",
            "512M",
        ),
    ] = None


class RetentionPart(Struct, frozen=True, kw_only=True):
    """How long finished records are kept."""

    succeeded: Annotated[int, Says(Duration(), "How long jobs are kept that succeeded.")] = _KEPT.succeeded_for
    failed: Annotated[int, Says(Duration(), "How long jobs are kept that failed.")] = _KEPT.failed_for
    cancelled: Annotated[int, Says(Duration(), "How long jobs are kept that were cancelled.")] = _KEPT.cancelled_for
    most_finished: Annotated[
        int, Says(Whole(1, 1_000_000_000), "Keep no more ended jobs than this; the oldest go first.")
    ] = _KEPT.most_finished
    occurrences: Annotated[int, Says(Duration(), "How long the record of each expected run is kept.")] = (
        _KEPT.occurrences_for
    )
    most_occurrences: Annotated[
        int, Says(Whole(1, 1_000_000), "Keep no more such records of one schedule than this.")
    ] = _KEPT.most_occurrences

    @classmethod
    def from_retention(cls, kept: Retention) -> RetentionPart:
        return cls(
            succeeded=kept.succeeded_for,
            failed=kept.failed_for,
            cancelled=kept.cancelled_for,
            most_finished=kept.most_finished,
            occurrences=kept.occurrences_for,
            most_occurrences=kept.most_occurrences,
        )

    def as_retention(self) -> Retention:
        """The same for the store."""
        return Retention(
            succeeded_for=self.succeeded,
            failed_for=self.failed,
            cancelled_for=self.cancelled,
            most_finished=self.most_finished,
            occurrences_for=self.occurrences,
            most_occurrences=self.most_occurrences,
        )


class LogPart(Struct, frozen=True, kw_only=True):
    """The messages that long-running commands write to stderr."""

    level: Annotated[
        str | None,
        Says(
            Choice(LEVELS),
            "How much `rota run`, `worker`, `scheduler` and `dev` log.",
            "`info`; `rota dev`: `warning`",
            "info",
        ),
    ] = None
    format: Annotated[
        str, Says(Choice(FORMATS), "The form of the lines that `rota run`, `worker` and `scheduler` log.")
    ] = "text"


class WebPart(Struct, frozen=True, kw_only=True):
    """Access to the HTTP API."""

    token: Annotated[
        str | None,
        Says(
            Secret(),
            "An admin's token for the HTTP API, of 16 characters or more; better set by ROTA_WEB_TOKEN than in a file.",
            "none; the first start of `rota web` makes one",
            "change-me-change-me",
        ),
    ] = None
    anonymous: Annotated[
        str | None,
        Says(
            Choice(("nothing", "read")),
            "What may be done over HTTP without a token; `read` needs a loopback address and a client on this machine.",
            "nothing",
            "nothing",
        ),
    ] = None
    hosts: Annotated[
        tuple[str, ...],
        Says(
            Hosts(),
            "Under which names, beside those of the loopback address, `web.anonymous: read` answers without a token.",
            "none",
            "[jobs.localhost]",
        ),
    ] = ()
    trusted_proxies: Annotated[
        tuple[str, ...],
        Says(
            Networks(),
            "Reverse proxies whose `X-Forwarded-For` is believed; failed logins count for the address behind them.",
            "none",
            "[127.0.0.1, 10.0.0.0/8]",
        ),
    ] = ()


class AlertingPart(Struct, frozen=True, kw_only=True):
    """How alert rules are checked, and the addresses that webhooks may reach."""

    every: Annotated[int, Says(Duration("10m"), "How often the alert rules are checked.")] = 15 * SECOND
    secret: Annotated[
        str | None,
        Says(
            WebhookSecret(),
            "Signs the requests of webhooks that have no secret of their own; better set by ROTA_ALERTING_SECRET.",
            "none",
            "env:OPS_WEBHOOK_SECRET",
        ),
    ] = None
    networks: Annotated[
        tuple[str, ...],
        Says(
            Networks(),
            "Networks beside the public internet that webhooks and heartbeat URLs may lead to, also by http://.",
            "none",
            "[10.0.0.0/8]",
        ),
    ] = ()
    node_heartbeat: Annotated[
        str | None,
        Says(
            WebUrl(),
            "A URL that every node calls once a minute while it is well; `{host}` in it is the name of its host.",
            "none",
            "env:NODE_HEARTBEAT",
        ),
    ] = None


class SmtpPart(Struct, frozen=True, kw_only=True):
    """The mail server that sends alerts by e-mail."""

    host: Annotated[
        str | None, Says(Text("the name of a mail server"), "The mail server.", "none", "mail.example.org")
    ] = None
    port: Annotated[int, Says(Whole(1, 65_535), "Its port.")] = 587
    tls: Annotated[
        str,
        Says(
            Choice(TLS),
            "How the connection is encrypted: `starttls` (usually port 587), `tls` from the start (465), or `none`.",
        ),
    ] = "starttls"
    user: Annotated[str | None, Says(Text("a user's name"), "Who logs in.", "nobody", "rota")] = None
    password: Annotated[
        str | None,
        Says(Password(), "The user's password; better set by ROTA_SMTP_PASSWORD.", "none", "change-me"),
    ] = None
    sender: Annotated[
        str | None, Says(MailAddress(), "The address that alerts come from.", "none", "rota@example.org")
    ] = None


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that can be set. Durations are microseconds, sizes bytes."""

    app: Annotated[
        str | None,
        Says(
            Target(),
            "The app, so that commands need no TARGET. A file's path begins beside rota.yaml.",
            "none",
            "jobs.py",
        ),
    ] = None
    store: Annotated[
        str | None,
        Says(
            Url(),
            "Where jobs and schedules are kept. A relative path begins beside rota.yaml.",
            "`.rota/rota.db` (SQLite) beside rota.yaml, else beside the target file, else in the current folder",
            "sqlite:///jobs.db",
        ),
    ] = None
    namespace: Annotated[str, Says(Namespace(), "Which of several Rota systems in one store.")] = "rota"
    tz: Annotated[str, Says(Zone(), "The timezone of schedules that name none.")] = "UTC"
    lease: Annotated[
        int, Says(Duration("1d"), "How long a silent worker owns its jobs before others take them over.")
    ] = 30 * SECOND
    drain: Annotated[int, Says(Duration("1d"), "How long a first SIGTERM or Ctrl-C waits for running jobs.")] = (
        25 * SECOND
    )
    redact: Annotated[
        tuple[str, ...],
        Says(
            Hidden(),
            "Names of arguments, beside `password`, `token` and their like, whose values are shown as `[redacted]`.",
            example="[iban, pin]",
        ),
    ] = ()
    check_types: Annotated[
        str,
        Says(
            Choice(CHECKS),
            "When arguments and results must be what plain hints such as `int` say: in `rota dev` and the testing kit "
            "(`dev`), `always` or `never`.",
        ),
    ] = "dev"
    worker: WorkerPart = WorkerPart()
    retention: RetentionPart = RetentionPart()
    log: LogPart = LogPart()
    web: WebPart = WebPart()
    alerting: AlertingPart = AlertingPart()
    smtp: SmtpPart = SmtpPart()


class Key(Struct, frozen=True, kw_only=True):
    """One setting: its path, kind, meaning and default."""

    path: str  # as in worker.concurrency
    kind: Kind
    meaning: str
    default: Any
    otherwise: str = ""
    example: str = ""

    @property
    def variable(self) -> str:
        """The environment variable: worker.concurrency is ROTA_WORKER_CONCURRENCY."""
        return f"ROTA_{self.path.upper().replace('.', '_')}"

    def text(self, value: Any) -> str:
        return "" if value is None else self.kind.text(value)


def _keys_of(part: type[Struct], prefix: str = "") -> dict[str, Key]:
    keys: dict[str, Key] = {}
    hints = get_type_hints(part, include_extras=True)
    for name, default in zip(part.__struct_fields__, part.__struct_defaults__, strict=True):
        if isinstance(default, Struct):
            keys |= _keys_of(type(default), f"{name}.")
        else:
            says: Says = hints[name].__metadata__[0]
            keys[prefix + name] = Key(
                path=prefix + name,
                kind=says.kind,
                meaning=says.meaning,
                default=default,
                otherwise=says.otherwise,
                example=says.example or says.kind.text(default),
            )
    return keys


KEYS = _keys_of(Settings)
PARTS: dict[str, type[Struct]] = {
    "worker": WorkerPart,
    "retention": RetentionPart,
    "log": LogPart,
    "web": WebPart,
    "alerting": AlertingPart,
    "smtp": SmtpPart,
}


def settings_from(values: Mapping[str, Any]) -> Settings:
    """The settings with these values, by path; the rest are defaults."""
    top = {path: value for path, value in values.items() if "." not in path}
    parts: dict[str, Any] = {
        name: part(**{path.partition(".")[2]: value for path, value in values.items() if path.startswith(f"{name}.")})
        for name, part in PARTS.items()
    }
    return Settings(**top, **parts)


def value_at(settings: Settings, path: str) -> Any:
    """The value of a key: value_at(settings, "worker.concurrency")."""
    return attrgetter(path)(settings)
