"""PayPal's OAuth access token: requested with the merchant's credentials, cached until shortly before it expires."""

from __future__ import annotations

import asyncio
import time

import httpx2

from holdfast.billing.provider import Unavailable

_MARGIN_SECONDS = 60.0
"""A token that expires within this time is renewed: the request that uses it takes time too."""


class AccessToken:
    """One token for all requests; concurrent requests wait for one renewal."""

    def __init__(self, http: httpx2.AsyncClient, client_id: str, secret: str) -> None:
        self._http = http
        self._credentials = httpx2.BasicAuth(client_id, secret)
        self._renewing = asyncio.Lock()
        self._token = ""
        self._valid_until = 0.0

    async def current(self) -> str:
        """A valid token."""
        async with self._renewing:
            if time.monotonic() >= self._valid_until:
                await self._renew()
            return self._token

    def forget(self) -> None:
        """Renew the token at the next use, because PayPal has refused it."""
        self._valid_until = 0.0

    async def _renew(self) -> None:
        requested_at = time.monotonic()
        answer = await self._http.post(
            "/v1/oauth2/token", data={"grant_type": "client_credentials"}, auth=self._credentials
        )
        try:
            document = answer.json()
            token, seconds = document["access_token"], float(document["expires_in"])
        except (ValueError, KeyError, TypeError):
            raise Unavailable(f"PayPal gave no token (status {answer.status_code})") from None
        self._token = str(token)
        self._valid_until = requested_at + seconds - _MARGIN_SECONDS
