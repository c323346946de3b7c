"""Reads forms, and refuses those that another site had a browser send."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from rota.sentences import sentence
from rota.web.reading import LARGEST_BODY
from rota.web.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from starlette.requests import Request

MOST_FIELDS = 2_000


class Form:
    """The fields of a form, in their order; a field may be there several times."""

    def __init__(self, fields: Sequence[tuple[str, str]] = ()) -> None:
        self.fields = fields

    def get(self, name: str, default: str = "") -> str:
        return next((value for key, value in self.fields if key == name), default)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key == name]

    def __contains__(self, name: str) -> bool:
        return any(key == name for key, _ in self.fields)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.fields)


async def read_form(request: Request) -> Form:
    """The body as a form; a large one is not read to its end."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    text = b""
    async for chunk in request.stream():
        text += chunk
        if len(text) > LARGEST_BODY:
            raise Refusal(
                413,
                "body_too_large",
                sentence("form.large", "the form is larger than {most:,} bytes", most=LARGEST_BODY),
            )
    if text and kind != "application/x-www-form-urlencoded":
        raise Refusal(
            415,
            "bad_content_type",
            sentence("form.type", "a page takes forms alone; programs use the API"),
            field="Content-Type",
        )
    try:
        fields = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS, encoding="utf-8", errors="strict"
        )
    except ValueError as err:  # bytes that are no text, or too many fields
        raise Refusal(
            400, "bad_form", sentence("form.unreadable", "the form cannot be read: {error}", error=err)
        ) from err
    return Form(fields)


def check_same_site(headers: Mapping[str, str], scheme: str) -> None:
    """Refuse a form that came from another site. Browsers say where a request comes from, and pages cannot forge it."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        is_own = site in {"same-origin", "none"}
    else:
        origin = headers.get("origin")
        own = f"{scheme}://{headers.get('host', '')}".lower()
        is_own = origin is None or (urlsplit(origin).netloc != "" and origin.lower() == own)
    if not is_own:
        raise Refusal(
            403,
            "other_site",
            sentence("form.other_site", "the form came from another site, so nothing was done"),
            field="Origin",
        )


def form_token(secret: str) -> str:
    """A session's own, which no other site can know."""
    return hmac.new(secret.encode(), b"form", sha256).hexdigest()[:32] if secret else ""


def is_own_form(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), form_token(secret).encode())
