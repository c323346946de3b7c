"""Sends an alert by e-mail, through the SMTP server of the settings."""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

from rota.alerts.time_limit import TimeLimit
from rota.errors import AlertNotSent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.config.settings import SmtpPart
    from rota.model.alerts.message import Alert

ANSWER_FOR = 10.0  # seconds for one answer of the server
MESSAGE_FOR = 45.0  # seconds for all of them


def send_mail(smtp: SmtpPart, to: Sequence[str], alert: Alert) -> None:
    """Send the message through the server, whose host and sender are set; AlertNotSent if it does not accept it."""
    try:
        with _connected(smtp) as server:
            if smtp.user is not None:
                server.login(smtp.user, smtp.password or "")
            server.send_message(mail_of(alert, smtp.sender or "", to))
    except (OSError, smtplib.SMTPException, ValueError) as err:
        reason = _without(f"{type(err).__name__}: {err}", smtp.password)
        raise AlertNotSent(f"the mail server {smtp.host}:{smtp.port} did not take the message: {reason}") from err


class _Bounded(smtplib.SMTP):
    """A connection with a limit for everything, the first answer of the server included."""

    _limit: TimeLimit | None = None

    def connect(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        self._limit = TimeLimit(MESSAGE_FOR, lambda: self.sock).__enter__()
        try:
            return super().connect(*args, **kwargs)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._limit is not None:
            self._limit.__exit__(None, None, None)
        super().close()


class _BoundedTls(_Bounded, smtplib.SMTP_SSL):
    """The same, with TLS from the beginning."""


def _connected(smtp: SmtpPart) -> smtplib.SMTP:
    host, context = smtp.host or "", ssl.create_default_context()
    if smtp.tls == "tls":
        return _BoundedTls(host, smtp.port, timeout=ANSWER_FOR, context=context)
    server = _Bounded(host, smtp.port, timeout=ANSWER_FOR)
    if smtp.tls == "starttls":
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
    return server


def mail_of(alert: Alert, sender: str, to: Sequence[str]) -> EmailMessage:
    """The message. The recovery answers the alert, so that mail programs show both together."""
    mail = EmailMessage()
    mail["Subject"] = _one_line(f"[{alert.app}] {alert.title}")
    mail["From"] = sender
    mail["To"] = ", ".join(to)
    mail["Date"] = formatdate()
    domain = sender.rpartition("@")[2].rstrip(">") or "localhost"
    mail["Message-ID"] = f"<{alert.id}@{domain}>"
    if alert.is_over:
        mail["In-Reply-To"] = f"<{alert.id.replace('-recovered-', '-raised-')}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    lines = [
        alert.text,
        "",
        f"Rule: {alert.rule} ({alert.when})",
        f"{alert.kind.capitalize()}: {alert.subject}",
        f"Raised: {alert.raised_at}",
    ]
    if alert.ended_at:
        lines.append(f"Ended: {alert.ended_at}")
    if alert.alert_id:
        lines += ["", f"rota alerts show {alert.alert_id}"]
    mail.set_content("\n".join(lines) + "\n")
    return mail


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _without(text: str, secret: str | None) -> str:
    return text.replace(secret, "********") if secret else text
