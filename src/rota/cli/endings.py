"""Turns errors into messages and exit codes.

0 ok, 1 failed or unhealthy, 2 usage, 3 the target cannot be loaded, 4 the store, 5 not found, 6 refused,
7 the job failed, 8 timed out, 130 interrupted.
"""

from __future__ import annotations

import os
import traceback

import click

from rota.cli.output import FORMS, say
from rota.cli.target import BrokenTarget, trace_of
from rota.errors import BadSettings, JobNotFound, ResultTimeout, RotaError, ScheduleNotFound, TenantNotFound
from rota.tasks.middleware import error_of_middleware

FAILED = 1
INTERRUPTED = 130
MOST_COMPLAINTS = 10

HINTS: dict[type[RotaError], str] = {
    JobNotFound: "`rota jobs list` shows the jobs that are kept",
    ScheduleNotFound: "`rota schedules list` shows those that exist",
    TenantNotFound: "`rota tenants list` shows those that exist",
}

_ABOUT_CREATE = (
    "create() also runs for schedules, the command line and the dashboard, without the context of a request; "
    "let it pass such jobs on, or catch the error there"
)


def report_error(err: BaseException) -> int:
    """Write the error to stderr; return the exit code."""
    match err:
        case BrokenTarget():
            say(f"{err.trace}\n")
            return _error(str(err), code=err.exit_code)
        case BadSettings() if len(err.complaints) > 1:
            return _errors(err)
        case RotaError():
            return _error(str(err), hint=_hint(err), code=err.exit_code)
        case click.Abort() | KeyboardInterrupt():
            return _error("interrupted", code=INTERRUPTED)
        case click.UsageError():
            return _error(_in_our_words(err), hint=_usage_hint(err), code=err.exit_code)
        case click.ClickException():
            return _error(_in_our_words(err), code=err.exit_code)
        case _:
            return _unexpected(err)


def _hint(err: RotaError) -> str:
    if isinstance(err, ResultTimeout) and err.job_id:
        return f"`rota jobs show {err.job_id}` shows what became of it, `rota nodes list` who works"
    return HINTS.get(type(err), "")


def _error(message: str, *, hint: str = "", code: int) -> int:
    say(f"{click.style('error:', fg='red', bold=True)} {message}")
    if hint:
        say(f"{click.style('hint:', bold=True)} {hint}")
    return code


def _errors(err: BadSettings) -> int:
    """The complaints, or the first of them if there are many."""
    for complaint in err.complaints[:MOST_COMPLAINTS]:
        _error(complaint, code=err.exit_code)
    if len(err.complaints) > MOST_COMPLAINTS:
        say(f"and {len(err.complaints) - MOST_COMPLAINTS} more: `rota lint` shows all")
    return err.exit_code


def _in_our_words(err: click.ClickException) -> str:
    """Click's message in the style of Rota's."""
    message = err.format_message().rstrip(".")
    return message[:1].lower() + message[1:]


def _usage_hint(err: click.UsageError) -> str:
    if isinstance(err, click.NoSuchOption) and err.option_name[1:2].isdigit():
        return f"put -- before arguments that begin with a dash, as in `-- {err.option_name}`"
    if isinstance(err, click.NoSuchOption) and err.ctx is not None and _is_form(err.option_name, err.ctx.command):
        return f"`-o {err.option_name.lstrip('-')}` writes that form"
    path = err.ctx.command_path if err.ctx else "rota"
    return f"`{path} --help` shows how it is used"


def _is_form(option: str, command: click.Command) -> bool:
    """Whether it names a form of output that the command can write."""
    return option.lstrip("-") in FORMS and any(one.name == "out" for one in command.params)


def _unexpected(err: BaseException) -> int:
    """A fault of the user's middleware, with its traceback; or one of Rota's own, with a way to the traceback."""
    if (raised := error_of_middleware(err)) is not None:
        say(f"{trace_of(err)}\n")
        return _error(str(raised), hint=_ABOUT_CREATE, code=raised.exit_code)
    if os.environ.get("ROTA_DEBUG"):
        say("".join(traceback.format_exception(err)))
    return _error(
        f"Rota itself failed: {type(err).__name__}: {err}",
        hint="this is a bug; run it again with ROTA_DEBUG=1 and report what that shows",
        code=FAILED,
    )
