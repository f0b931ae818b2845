"""Browser page that records errors: console messages, dialogs, and requests to other servers."""

from urllib.parse import urlsplit


class WatchedPage:
    """Records the errors of a page."""

    def __init__(self, page, port):
        self.page = page
        self.wrongs = []
        self.host = f"127.0.0.1:{port}"
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.wrongs.append(f"error: {error}"))
        page.on("request", self._see)
        page.on("dialog", self._close)
        # A violation that a script catches is still reported to the document.
        page.add_init_script(
            "document.addEventListener('securitypolicyviolation',"
            " (event) => console.error(`violation of ${event.violatedDirective} by ${event.blockedURI}`))"
        )

    def _hear(self, message):
        # Chromium logs this for every answer that is no success; tests check those themselves.
        if message.type in {"error", "warning"} and not message.text.startswith("Failed to load resource"):
            self.wrongs.append(f"{message.type}: {message.text}")

    def _see(self, request):
        address = urlsplit(request.url)
        if address.scheme not in {"data", "blob", "about"} and address.netloc != self.host:
            self.wrongs.append(f"a request left the server: {request.url}")

    def _close(self, dialog):
        self.wrongs.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def check(self):
        assert not self.wrongs, self.wrongs
