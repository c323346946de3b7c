"""Holds the stylesheet, the script and the icon. Their names contain their hash, so that browsers keep them."""

from __future__ import annotations

import gzip
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER = Path(__file__).parent / "static"
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
FOR_EVER = "public, max-age=31536000, immutable"


class Asset(Struct, frozen=True, kw_only=True):
    """One file."""

    name: str  # rota.css
    served_as: str  # rota.1f2e3d4c5b6a.css
    media: str
    body: bytes
    packed: bytes


@lru_cache(maxsize=1)
def assets() -> Mapping[str, Asset]:
    """All files, by their own names and by those that they are served under."""
    found = [_asset(path) for path in sorted(_FOLDER.iterdir()) if path.suffix in _KINDS]
    return {name: asset for asset in found for name in (asset.name, asset.served_as)}


def _asset(path: Path) -> Asset:
    body = path.read_bytes()
    served_as = f"{path.stem}.{sha256(body).hexdigest()[:12]}{path.suffix}"
    packed = gzip.compress(body, 9, mtime=0)
    return Asset(name=path.name, served_as=served_as, media=_KINDS[path.suffix], body=body, packed=packed)
