"""Sources: collections that are kept in sync, each by one task at a time, on a schedule or when somebody asks."""

from rota.sources.declaring import CollectionWords, SourceWords, read_sources, specs_of
from rota.sources.sources import CollectionView, Sources, SourceView
from rota.sources.task import SyncTask

__all__ = [
    "CollectionView",
    "CollectionWords",
    "SourceView",
    "SourceWords",
    "Sources",
    "SyncTask",
    "read_sources",
    "specs_of",
]
