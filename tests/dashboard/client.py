"""HTTP client for the dashboard: sends given bytes and headers, keeps its cookie, and reads forms."""

import html
import http.client
import re
from urllib.parse import urlencode

from tests.http.job_client import ROOT_KEY

FORM = "application/x-www-form-urlencoded"


class DashboardClient:
    """A client of the server at a port."""

    def __init__(self, port, cookie=""):
        self.port = port
        self.cookie = cookie

    def send(self, method, path, body=None, **headers):
        """(status, headers, text)"""
        given = {"Accept": "text/html", **({"Cookie": self.cookie} if self.cookie else {})}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, given)
            response = connection.getresponse()
            return response.status, response.headers, response.read().decode()
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.send("GET", path, **headers)

    def post(self, path, **fields):
        return self.send("POST", path, urlencode(fields), Content_Type=FORM)

    def sign_in(self, key=ROOT_KEY):
        status, headers, text = self.post("/ui/sign-in", key=key)
        assert status == 303, text
        self.cookie = headers["Set-Cookie"].split(";")[0]
        return self

    def token(self, path="/"):
        """The form token of this browser session."""
        return re.search(r'name="token" value="([0-9a-f]+)"', self.get(path)[2])[1]


def text_of(page):
    """The text of a page, without its markup."""
    return html.unescape(re.sub(r"<[^>]*>", "", page))
