"""Receivers that lie, stall and lead astray: an attempt ends in its time, and never where it must not go."""

import asyncio
import socket
import ssl
import threading
import time

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


class Book:
    """A resolver that answers from a list, one entry a question, the last for ever."""

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
    """What comes of so many attempts in a row."""

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


def nonsense(request):
    request.wfile.write(b"\0\1\2 I am no web server\r\n\r\n")


def hang_up(request):
    request.wfile.close()
    request.connection.close()


@pytest.mark.parametrize(
    ("rude", "status", "error"),
    [
        (stall, None, "timeout"),
        (drip_head, None, "timeout"),
        (drip_body, 200, None),
        (huge_body, 200, None),
        (huge_head, None, "connection broke"),
        (nonsense, None, "connection broke"),
        (hang_up, None, "connection broke"),
    ],
)
def test_an_attempt_ends_in_its_time_whatever_the_receiver_does(receiver, path, rude, status, error):
    began = time.monotonic()
    verdict = attempt(receiver.url(path, rude))
    assert (verdict.status, verdict.error, verdict.arrived) == (status, error, status == 200)
    assert time.monotonic() - began < 2.5


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_nobody_follows_it(receiver, path, status):
    elsewhere = receiver.url(f"{path}/elsewhere")

    def redirect(request):
        request.send_response(status)
        request.send_header("Location", elsewhere)
        request.send_header("Content-Length", "0")
        request.end_headers()

    verdict = attempt(receiver.url(path, redirect))
    assert (verdict.arrived, verdict.status) == (False, status)
    assert receiver.on(f"{path}/elsewhere") == []


def test_the_environment_s_proxies_are_not_used(receiver, path, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert attempt(receiver.url(path)).arrived


# -- names and addresses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["10.0.0.1"], ["::1"], ["::ffff:127.0.0.1"], ["169.254.169.254"]],
)
def test_a_name_that_leads_inside_is_refused_if_only_one_of_its_addresses_does(receiver, path, answer):
    verdict = attempt(f"https://{NAME}:{receiver.port}{path}", private=False, resolve=Book(answer))
    assert (verdict.arrived, verdict.error) == (False, "not a public address")
    network = CheckedNetwork(Book(answer), private=False)
    with pytest.raises(NotPublic):
        asyncio.run(network.connect_tcp(NAME, receiver.port))


def test_an_address_that_could_not_be_chosen_today_is_not_used(receiver, path):
    """It may have been chosen when the operator allowed more."""
    for family in ("standard", "octostore"):
        assert attempt(receiver.url(path), private=False, family=family).error == "address not allowed"
    assert attempt(f"https://{NAME}:8443/", private=False, family="standard").error == "address not allowed"
    assert attempt(f"https://localhost.:{receiver.port}{path}", private=False, resolve=Book(["::1"])).error == (
        "not a public address"
    )
    assert receiver.on(path) == []


def test_a_name_is_asked_for_once_an_attempt_and_again_at_the_next(receiver, path):
    """Whoever answers the check with one address and the connection with another finds that there is one question."""
    book = Book(["8.8.8.8", "10.0.0.1"], NoSuchHost(), [], ["127.0.0.1"])
    verdicts = attempts(f"https://{NAME}:{receiver.port}{path}", 4, private=False, resolve=book)
    assert [verdict.error for verdict in verdicts] == [
        "not a public address",
        "no such host",
        "no such host",
        "not a public address",
    ]
    assert book.asked == [(NAME, receiver.port)] * 4


def test_the_connection_goes_to_the_address_that_was_checked_under_the_name(receiver, path):
    receiver.url(path)
    book = Book(["127.0.0.1"])
    verdicts = attempts(f"http://{NAME}:{receiver.port}{path}", 2, resolve=book)
    assert [verdict.arrived for verdict in verdicts] == [True, True]
    assert {message.headers["host"] for message in receiver.on(path)} == {f"{NAME}:{receiver.port}"}
    assert len(book.asked) == 2


def test_an_address_that_takes_nobody_is_passed_over(receiver, path):
    receiver.url(path)
    verdict = attempt(f"http://{NAME}:{receiver.port}{path}", resolve=Book(["127.0.0.2", "127.0.0.1"]))
    assert verdict.arrived
    assert attempt("http://127.0.0.1:9/").error == "connection failed"


# -- TLS ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    """A receiver with a certificate for 127.0.0.1 that nobody vouches for."""
    cert, key = make_certificate(tmp_path_factory.mktemp("tls"))
    trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trust.load_cert_chain(cert, key)
    receiver = Receiver(trust)
    receiver.cert = str(cert)
    yield receiver
    receiver.close()


def test_only_a_certificate_that_somebody_trusts_for_that_very_name_will_do(sealed, path):
    sealed.url(path)
    here = f"https://127.0.0.1:{sealed.port}{path}"
    assert attempt(here).error == "tls failed"
    assert attempt(here, ca_bundle=sealed.cert).arrived
    elsewhere = f"https://{NAME}:{sealed.port}{path}"
    assert attempt(elsewhere, ca_bundle=sealed.cert, resolve=Book(["127.0.0.1"])).error == "tls failed"
    assert len(sealed.on(path)) == 1


def test_a_receiver_without_tls_is_a_failure(receiver, path):
    assert attempt(receiver.url(path).replace("http:", "https:")).error == "tls failed"


# -- resolvers that hang -----------------------------------------------------------------------------------------


@pytest.fixture
def slow_resolver(monkeypatch):
    """The system's resolver, which does not answer for one domain until the test is over."""
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


def test_a_resolver_that_hangs_for_one_webhook_holds_up_no_other_and_no_stop(slow_resolver):
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


def test_a_place_at_the_resolver_is_free_again_after_its_answer():
    async def run():
        lookups = Resolver()
        found = [await lookups.resolve("localhost", 80) for _ in range(PER_HOOK * 3)]
        with pytest.raises(NoSuchHost):
            await lookups.resolve("a." * 200 + "invalid", 80)
        return found

    assert all(asyncio.run(run()))
