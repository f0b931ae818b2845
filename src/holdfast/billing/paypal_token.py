"""The token that opens PayPal: asked for with the merchant's credentials, kept until shortly before its end."""

from __future__ import annotations

import asyncio
import time

import httpx2

from holdfast.billing.provider import Unavailable

_MARGIN_SECONDS = 60.0
"""A token that ends within this is as good as over: the request it opens takes time as well."""


class Token:
    """One token for all requests; whoever finds it over asks, and the others wait for that answer."""

    def __init__(self, http: httpx2.AsyncClient, client_id: str, secret: str) -> None:
        self._http = http
        self._credentials = httpx2.BasicAuth(client_id, secret)
        self._asking = asyncio.Lock()
        self._token = ""
        self._good_until = 0.0

    async def current(self) -> str:
        """A token that opens."""
        async with self._asking:
            if time.monotonic() >= self._good_until:
                await self._renew()
            return self._token

    def forget(self) -> None:
        """PayPal did not take it."""
        self._good_until = 0.0

    async def _renew(self) -> None:
        asked_at = time.monotonic()
        answer = await self._http.post(
            "/v1/oauth2/token", data={"grant_type": "client_credentials"}, auth=self._credentials
        )
        try:
            document = answer.json()
            token, seconds = document["access_token"], float(document["expires_in"])
        except (ValueError, KeyError, TypeError):
            raise Unavailable(f"PayPal gave no token (status {answer.status_code})") from None
        self._token = str(token)
        self._good_until = asked_at + seconds - _MARGIN_SECONDS
