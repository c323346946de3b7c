"""Checks URLs of MongoDB servers, and shows them without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pymongo
from pymongo.errors import PyMongoError

from rota.errors import BadStoreUrl
from rota.store.mongo.faults import translate

if TYPE_CHECKING:
    from pymongo import MongoClient

    from rota.store.mongo.database import Document

DATABASE = "rota"  # if the URL names none


def shown(where: str | MongoClient[Document], database: str | None) -> str:
    """The address for people: no user, no password, no options."""
    if not isinstance(where, str):
        return f"mongodb database {database or where.get_default_database(DATABASE).name} of a client given by its user"
    parts = urlsplit(where)
    hosts = parts.netloc.rpartition("@")[2]
    return f"mongodb database {database or parts.path.strip('/') or DATABASE} at {hosts}"


def check_url(url: str, where: str) -> None:
    if url.startswith("mongodb+srv:"):
        return  # open() asks the name server
    try:
        pymongo.uri_parser.parse_uri(url)
    except (PyMongoError, ValueError) as err:
        known = translate(err, where) if isinstance(err, PyMongoError) else None
        raise known or BadStoreUrl(f"{where}: {err}") from None  # the driver's message may quote the password
