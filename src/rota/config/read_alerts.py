"""What only alerts say in rota.yaml: a rule whose options fit its condition, and a channel of exactly one kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.errors import RotaError
from rota.model.alerts.channel import make_email, make_webhook
from rota.model.alerts.rule import make_rule

if TYPE_CHECKING:
    from rota.config.nodes import Walk
    from rota.model.alerts.channel import Channel
    from rota.model.alerts.rule import AlertRule


def made_rule(walk: Walk, name: str, path: str, key_node: Any, options: dict[str, Any]) -> AlertRule | None:
    """The rule; None if a complaint was made instead."""
    try:
        return make_rule(name, place=walk.at(key_node), **options)
    except RotaError as err:
        walk.complain(key_node, path, str(err))
    return None


def made_channel(walk: Walk, name: str, path: str, key_node: Any, options: dict[str, Any]) -> Channel | None:
    """The channel; None if a complaint was made instead."""
    if len(options.keys() & {"webhook", "email"}) != 1:
        walk.complain(key_node, path, "has to say one of `webhook` and `email`")
        return None
    place = walk.at(key_node)
    if "webhook" in options:
        return make_webhook(name, options["webhook"], secret=options.get("secret"), place=place)
    if "secret" in options:
        walk.complain(
            key_node, path, "has a `secret`, and only webhooks are signed; the mail server's is smtp.password"
        )
        return None
    return make_email(name, options["email"], place=place)
