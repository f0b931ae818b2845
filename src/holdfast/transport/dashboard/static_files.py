"""Static files, read once at start. Their address contains a hash of their content, so browsers cache them."""

from __future__ import annotations

import hashlib
from importlib import resources

from holdfast.transport.http.request import HttpRefusal, Response

_CONTENT_TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
_HEADERS = (
    (b"cache-control", b"public, max-age=31536000, immutable"),
    (b"content-security-policy", b"default-src 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class StaticFiles:
    """All files share one hash, so that scripts can import each other by relative paths."""

    def __init__(self) -> None:
        folder = resources.files(__package__) / "static"
        files = sorted((entry for entry in folder.iterdir() if entry.is_file()), key=lambda entry: entry.name)
        self._files = {entry.name: entry.read_bytes() for entry in files}
        self.version = hashlib.sha256(repr(sorted(self._files.items())).encode()).hexdigest()[:16]

    def url(self, name: str) -> str:
        """The address of a file."""
        assert name in self._files, f"there is no {name}"
        return f"/ui/static/{self.version}/{name}"

    def answer(self, rest: str) -> Response:
        """The file. A page of an older version gets the present file, marked as not to be cached."""
        version, _, name = rest.partition("/")
        content_type = _CONTENT_TYPES.get("." + name.rpartition(".")[2])
        if name not in self._files or content_type is None:
            raise HttpRefusal(404, "there is no such file")
        headers = _HEADERS if version == self.version else ((b"cache-control", b"no-store"), *_HEADERS[1:])
        return Response(200, self._files[name], headers, content_type)
