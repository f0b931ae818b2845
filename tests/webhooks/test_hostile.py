"""Hostile receivers: an attempt ends in time and never connects to a private address."""

import asyncio
import socket
import ssl
import threading
import time
from contextlib import suppress

import pytest

from holdfast.core.webhooks.delivery import Delivery
from holdfast.core.webhooks.webhook import Webhook
from holdfast.transport.webhooks.checked_network import CheckedNetwork, NotPublic
from holdfast.transport.webhooks.dns import CURRENT_WEBHOOK, PER_HOOK, NoSuchHost, Resolver
from holdfast.transport.webhooks.sender import Sender
from tests.http.network_servers import make_certificate
from tests.webhooks.receiver import Receiver

NAME = "hooks.example.com"
DELIVERY = Delivery("acct", "whk_1", 7, "task:a", "task.created", '{"type":"task.created"}', 0)


class FixedResolver:
    """A resolver with fixed answers in order; the last one is repeated."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, host, port):
        self.asked.append((host, port))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def attempts(url, count=1, **options):
    """The results of `count` attempts in a row."""

    async def run():
        network = {name: value for name, value in options.items() if name != "family"}
        sender = Sender(1, **({"private": True} | network))
        try:
            family = options.get("family", "octostore")  # whose addresses may have any port
            hook = Webhook("acct", "whk_1", url=url, family=family, secret="whsec_" + "A" * 43 + "=")
            return [await sender.send(hook, DELIVERY) for _ in range(count)]
        finally:
            await sender.close()

    return asyncio.run(run())


def attempt(url, **options):
    return attempts(url, **options)[0]


def stall(request):
    time.sleep(3)


def drip_head(request):
    for byte in b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100:
        request.wfile.write(bytes([byte]))
        time.sleep(0.1)


def drip_body(request):
    request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    stall(request)


def huge_body(request):
    request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 1_000_000)


def huge_head(request):
    request.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"a" * 10_000_000)


def endless_headers(request):
    request.wfile.write(b"HTTP/1.1 200 OK\r\n")
    send_for_ever(request, b"X: a\r\n" * 1_000)


def endless_interim_answers(request):
    send_for_ever(request, b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1_000)


def send_for_ever(request, block):
    with suppress(OSError):
        while True:
            request.wfile.write(block)


def send_garbage(request):
    request.wfile.write(b"\0\1\2 I am no web server\r\n\r\n")


def close_connection(request):
    request.wfile.close()
    request.connection.close()


@pytest.mark.parametrize(
    ("misbehave", "status", "error"),
    [
        (stall, None, "timeout"),
        (drip_head, None, "timeout"),
        (drip_body, 200, None),
        (huge_body, 200, None),
        (huge_head, None, "answer too long"),
        (endless_headers, None, "answer too long"),
        (endless_interim_answers, None, "answer too long"),
        (send_garbage, None, "connection broke"),
        (close_connection, None, "connection broke"),
    ],
)
def test_an_attempt_ends_in_time_whatever_the_receiver_does(receiver, path, misbehave, status, error):
    began = time.monotonic()
    verdict = attempt(receiver.url(path, misbehave))
    assert (verdict.status, verdict.error, verdict.arrived) == (status, error, status == 200)
    assert time.monotonic() - began < 2.5


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_is_not_followed(receiver, path, status):
    elsewhere = receiver.url(f"{path}/elsewhere")

    def redirect(request):
        request.send_response(status)
        request.send_header("Location", elsewhere)
        request.send_header("Content-Length", "0")
        request.end_headers()

    verdict = attempt(receiver.url(path, redirect))
    assert (verdict.arrived, verdict.status) == (False, status)
    assert receiver.on(f"{path}/elsewhere") == []


def test_proxies_of_the_environment_are_not_used(receiver, path, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert attempt(receiver.url(path)).arrived


# -- names and addresses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["10.0.0.1"], ["::1"], ["::ffff:127.0.0.1"], ["169.254.169.254"]],
)
def test_a_name_is_refused_if_one_of_its_addresses_is_private(receiver, path, answer):
    verdict = attempt(f"https://{NAME}:{receiver.port}{path}", private=False, resolve=FixedResolver(answer))
    assert (verdict.arrived, verdict.error) == (False, "not a public address")
    network = CheckedNetwork(FixedResolver(answer), private=False)
    with pytest.raises(NotPublic):
        asyncio.run(network.connect_tcp(NAME, receiver.port))


def test_a_url_that_the_settings_no_longer_allow_is_not_used(receiver, path):
    """It may have been created when the settings allowed it."""
    for family in ("standard", "octostore"):
        assert attempt(receiver.url(path), private=False, family=family).error == "address not allowed"
    assert attempt(f"https://{NAME}:8443/", private=False, family="standard").error == "address not allowed"
    assert attempt(
        f"https://localhost.:{receiver.port}{path}", private=False, resolve=FixedResolver(["::1"])
    ).error == ("not a public address")
    assert receiver.on(path) == []


def test_a_name_is_resolved_once_per_attempt(receiver, path):
    """A DNS server cannot return one address to the check and another to the connection."""
    book = FixedResolver(["8.8.8.8", "10.0.0.1"], NoSuchHost(), [], ["127.0.0.1"])
    verdicts = attempts(f"https://{NAME}:{receiver.port}{path}", 4, private=False, resolve=book)
    assert [verdict.error for verdict in verdicts] == [
        "not a public address",
        "no such host",
        "no such host",
        "not a public address",
    ]
    assert book.asked == [(NAME, receiver.port)] * 4


def test_the_connection_goes_to_the_checked_address_with_the_host_name(receiver, path):
    receiver.url(path)
    book = FixedResolver(["127.0.0.1"])
    verdicts = attempts(f"http://{NAME}:{receiver.port}{path}", 2, resolve=book)
    assert [verdict.arrived for verdict in verdicts] == [True, True]
    assert {message.headers["host"] for message in receiver.on(path)} == {f"{NAME}:{receiver.port}"}
    assert len(book.asked) == 2


def test_an_address_that_refuses_connections_is_skipped(receiver, path):
    receiver.url(path)
    verdict = attempt(f"http://{NAME}:{receiver.port}{path}", resolve=FixedResolver(["127.0.0.2", "127.0.0.1"]))
    assert verdict.arrived
    assert attempt("http://127.0.0.1:9/").error == "connection failed"


# -- TLS ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tls_receiver(tmp_path_factory):
    """A receiver with a self-signed certificate for 127.0.0.1."""
    cert, key = make_certificate(tmp_path_factory.mktemp("tls"))
    trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trust.load_cert_chain(cert, key)
    receiver = Receiver(trust)
    receiver.cert = str(cert)
    yield receiver
    receiver.close()


def test_only_a_trusted_certificate_for_the_host_name_is_accepted(tls_receiver, path):
    tls_receiver.url(path)
    here = f"https://127.0.0.1:{tls_receiver.port}{path}"
    assert attempt(here).error == "tls failed"
    assert attempt(here, ca_bundle=tls_receiver.cert).arrived
    elsewhere = f"https://{NAME}:{tls_receiver.port}{path}"
    assert attempt(elsewhere, ca_bundle=tls_receiver.cert, resolve=FixedResolver(["127.0.0.1"])).error == "tls failed"
    assert len(tls_receiver.on(path)) == 1


def test_a_receiver_without_tls_is_a_failure(receiver, path):
    assert attempt(receiver.url(path).replace("http:", "https:")).error == "tls failed"


# -- resolvers that hang -----------------------------------------------------------------------------------------


@pytest.fixture
def slow_resolver(monkeypatch):
    """The system's resolver, which does not answer for one domain until the test ends."""
    over, asked, answer = threading.Event(), [], socket.getaddrinfo

    def resolve(host, *more, **options):
        if host.endswith(".slow.example"):
            asked.append(host)
            over.wait(30)
            raise OSError
        return answer(host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    yield asked
    over.set()


def test_a_hanging_lookup_delays_no_other_webhook_and_no_shutdown(slow_resolver):
    lookups = Resolver()

    async def resolve(hook, host):
        CURRENT_WEBHOOK.set(hook)
        async with asyncio.timeout(0.5 if host.endswith(".example") else 20):
            return await lookups.resolve(host, 80)

    async def run():
        for attempts in (20, 20):  # the second ones come when the first have given up
            slow = [asyncio.create_task(resolve(("acct", "whk_1"), "x.slow.example")) for _ in range(attempts)]
            await asyncio.wait(slow)
            assert {type(each.exception()) for each in slow} == {TimeoutError}
        assert len(slow_resolver) == PER_HOOK, "an attempt that gave up still holds the place of its question"
        return await asyncio.create_task(resolve(("acct", "whk_2"), "localhost"))

    began = time.monotonic()
    assert set(asyncio.run(run())) <= {"127.0.0.1", "::1"}
    assert time.monotonic() - began < 15, "nobody waited for what hangs"


def test_a_finished_lookup_no_longer_counts_against_the_limits():
    async def run():
        lookups = Resolver()
        found = [await lookups.resolve("localhost", 80) for _ in range(PER_HOOK * 3)]
        with pytest.raises(NoSuchHost):
            await lookups.resolve("a." * 200 + "invalid", 80)
        return found

    assert all(asyncio.run(run()))
