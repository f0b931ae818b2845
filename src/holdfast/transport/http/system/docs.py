"""`/docs`: all routes on one static HTML page, generated from the table of operations."""

from __future__ import annotations

from html import escape

from holdfast import __version__
from holdfast.operations.table import OPERATIONS
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Header, Request, Response

_POLICY = (
    b"default-src 'none'; style-src 'unsafe-inline'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'"
)
HEADERS: tuple[Header, ...] = ((b"content-security-policy", _POLICY),)
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
body { overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8885; vertical-align: top; }
@media (max-width: 40rem) {
  tr { display: block; padding: .4rem 0; border-bottom: 1px solid #8885; }
  td { display: inline; border: 0; padding-right: .4rem; }
  td:last-child { display: block; }
}
"""


async def docs(ctx: HandlerContext, request: Request) -> Response:
    """The page."""
    return Response(200, _PAGE, HEADERS, b"text/html; charset=utf-8")


def _page() -> bytes:
    rows = "\n".join(
        f"<tr><td><code>{operation.method}</code></td><td><code>{escape(operation.path.replace('...', ''))}</code></td>"
        f"<td>{escape(operation.summary)}</td></tr>"
        for operation in OPERATIONS
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Holdfast {__version__}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Holdfast {__version__}</h1>
<p>Locks, sessions and elections follow the OctoStore API Documentation, tasks follow Orchestrion V1.
This page is intentionally read-only: it sends nothing and runs no script. <a href="/ui/reference">The reference</a> has
every field, with examples. For programs there is <a href="/openapi.yaml">/openapi.yaml</a>.</p>
<table>
{rows}
</table>
</body>
</html>
""".encode()


_PAGE = _page()
