"""Opens a MongoDB collection by the URL of its database. The source makes the client, and closes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pymongo
from pymongo.errors import ConfigurationError, InvalidURI

from rota.documents.sources.mongo.source import MongoSource
from rota.errors import BadOption
from rota.model.secrets.masking import masked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rota.documents.fields import Fields
    from rota.documents.sources.mongo.connection import Document, Documents

PATIENCE = 5_000  # ms until a server that does not answer counts as away


class OwnMongoSource(MongoSource):
    """`OwnMongoSource("mongodb://localhost/shop", "orders")`."""

    def __init__(
        self,
        url: str,
        collection: str,
        *,
        fields: Fields | None = None,
        condition: Mapping[str, Any] | None = None,
    ) -> None:
        self._url = url
        self._collection = collection
        self._clients: list[pymongo.MongoClient[Document]] = []
        _database_of(url)
        super().__init__(self._find, fields=fields, condition=condition)

    def close(self) -> None:
        while self._clients:
            self._clients.pop().close()

    def _find(self) -> Documents:
        """Called once in each process."""
        client: pymongo.MongoClient[Document] = pymongo.MongoClient(
            self._url, tz_aware=True, serverSelectionTimeoutMS=PATIENCE, appname="rota"
        )
        self._clients.append(client)
        return client[_database_of(self._url)][self._collection]


def _database_of(url: str) -> str:
    """The database that the URL names; BadOption for a URL that pymongo does not understand."""
    if url.startswith("mongodb+srv://"):  # the names of its servers would be looked up
        name = url.partition("://")[2].partition("/")[2].partition("?")[0]
    else:
        try:
            name = pymongo.uri_parser.parse_uri(url)["database"] or ""
        except (InvalidURI, ConfigurationError, ValueError) as err:
            raise BadOption(f"{masked(url)} is no URL of MongoDB: {err}") from err
    if not name:
        raise BadOption(f"{masked(url)} names no database; write it after the host, as in mongodb://localhost/shop")
    return name
