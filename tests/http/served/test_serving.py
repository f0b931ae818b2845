"""`holdfast serve` on a network: conditions for starting, TLS, and trusted proxies."""

import socket
import ssl

import pytest

from holdfast.settings import BadSettings, Settings, load
from tests.compat.octostore.server import free_port
from tests.faults.program import run
from tests.http.network_servers import NetworkServer, make_certificate, outer_address

KEY = "a-key-for-the-serving-tests-1"
BEARER = f"Bearer {KEY}"
WRONG = "Bearer nobody-knows-this-token-at-all"


@pytest.fixture
def start():
    """Start a server with these flags and variables; it is stopped after the test."""
    built = []

    def new(*flags, certificate=None, **more):
        server = NetworkServer(*flags, **more)
        server.certificate = certificate
        built.append(server)
        return server.start()

    yield new
    for server in built:
        server.close()


# -- TLS ---------------------------------------------------------------------------------------------------------


def test_with_a_certificate_it_speaks_https_and_nothing_else(start, tmp_path):
    cert, key = make_certificate(tmp_path)
    server = start("--tls-cert", str(cert), "--tls-key", str(key), certificate=cert, ROOT_KEY=KEY)
    assert server.ask("/locks", Authorization=BEARER).status == 200
    assert server.ask("/locks", Authorization=WRONG).status == 401
    assert f"listening on https://127.0.0.1:{server.port}" in server.log()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
        plain.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert not plain.recv(100).startswith(b"HTTP/")


def test_old_versions_of_tls_are_not_spoken(start, tmp_path):
    cert, key = make_certificate(tmp_path)
    server = start("--tls-cert", str(cert), "--tls-key", str(key), certificate=cert, ROOT_KEY=KEY)
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain, pytest.raises(ssl.SSLError):
        old.wrap_socket(plain)


def test_over_tls_a_key_may_come_from_any_machine(start, tmp_path):
    address = outer_address()
    cert, key = make_certificate(tmp_path, address=address)
    flags = ("--host", address, "--tls-cert", str(cert), "--tls-key", str(key))
    server = start(*flags, address=address, certificate=cert, ROOT_KEY=KEY)
    assert server.ask("/locks", Authorization=BEARER).status == 200


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files of a valid certificate and key, and of every kind that is refused."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = make_certificate(folder)
    _, other = make_certificate(folder, "other")
    _, locked = make_certificate(folder, "locked", password="secret")
    exposed = folder / "open.key"
    exposed.write_bytes(key.read_bytes())
    exposed.chmod(0o644)
    text = folder / "text"
    text.write_text("a letter to my aunt\n")
    names = {"cert": cert, "key": key, "other": other, "locked": locked, "text": text, "none": folder / "none"}
    names["open"] = exposed
    return {name: str(path) for name, path in names.items()} | {"folder": str(folder)}


PAIRS = [
    ("cert", None, "HOLDFAST_TLS_KEY: a certificate needs its key: set both"),
    (None, "key", "HOLDFAST_TLS_CERT: a certificate needs its key: set both"),
    ("none", "key", "--tls-cert: cannot read {none}: No such file or directory"),
    ("cert", "none", "--tls-key: cannot read {none}: No such file or directory"),
    ("folder", "key", "--tls-cert: cannot read {folder}: Is a directory"),
    ("text", "key", "--tls-cert: {text} contains no certificate in PEM format"),
    ("key", "key", "--tls-cert: {key} contains no certificate in PEM format"),
    ("cert", "text", "--tls-key: {text} contains no private key in PEM format that fits the certificate"),
    ("cert", "cert", "--tls-key: {cert} contains no private key in PEM format that fits the certificate"),
    ("cert", "other", "--tls-key: {other} is not the key of the certificate in {cert}"),
    ("cert", "open", "--tls-key: every user of this machine can read the private key {open}: run chmod 600 on it"),
    ("cert", "locked", "--tls-key: {locked} is encrypted with a password; remove the password"),
]


@pytest.mark.parametrize(("cert", "key", "line"), PAIRS)
def test_a_certificate_that_cannot_be_used_is_named_before_anything_starts(files, cert, key, line):
    given = {"store": "memory:", "tls_cert": files.get(cert), "tls_key": files.get(key)}
    with pytest.raises(BadSettings) as refusal:
        load(given, {})
    assert refusal.value.problems == [line.format(**files)]


def test_an_unusable_certificate_ends_the_program_with_one_line_and_status_2(files):
    ended = run("--store", "memory:", "--tls-cert", files["cert"], "--tls-key", files["other"])
    assert ended.lines == [
        f"holdfast: --tls-key: {files['other']} is not the key of the certificate in {files['cert']}"
    ]
    assert ended.status == 2


# -- public addresses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_server_without_a_key_does_not_start_on_a_public_address(host):
    port = free_port()
    ended = run("--store", "memory:", "--host", host, "--port", str(port))
    reason = f"{host} is open to other machines and has no key"
    ways = "set HOLDFAST_ROOT_KEY or HOLDFAST_STATIC_TOKENS, or start once on 127.0.0.1 to get a key"
    assert ended.lines == [f"holdfast: {reason}: {ways}"]
    assert ended.status == 2


@pytest.mark.parametrize("given", [{"ROOT_KEY": KEY}, {"STATIC_TOKENS": f"bob:{KEY}"}, {"ADMIN_KEY": KEY}])
def test_a_server_with_a_configured_key_starts_on_a_public_address(start, given):
    assert start("--host", "0.0.0.0", **given).ask("/health").status == 200


def test_a_key_in_the_store_is_enough_but_not_one_that_was_taken_off_the_list(start, tmp_path):
    store = f"sqlite:///{tmp_path}/x.db"
    start(store=store, STATIC_TOKENS=f"bob:{KEY}").stop()
    assert run("--host", "0.0.0.0", "--port", "0", "--store", store).status == 2
    first = start(store=store)
    first.stop()
    assert (tmp_path / "first-key-of-x.db.txt").exists()
    assert start("--host", "0.0.0.0", store=store).ask("/health").status == 200


def test_a_key_over_plain_http_to_a_public_address_is_refused(start):
    address = outer_address()
    server = start("--host", "0.0.0.0", ROOT_KEY=KEY)
    assert server.ask("/locks", Authorization=BEARER).status == 200, "on this machine's own address it is fine"
    server.address = address
    for key in (BEARER, WRONG):
        answer = server.ask("/v1/jobs", Authorization=key)
        assert (answer.status, answer.json["error"]) == (403, "insecure_transport")
    assert server.ask("/health").status == 200


def test_allow_insecure_http_accepts_keys_over_plain_http(start):
    address = outer_address()
    server = start("--host", address, "--allow-insecure-http", address=address, ROOT_KEY=KEY)
    assert server.ask("/locks", Authorization=BEARER).status == 200


def test_a_trusted_proxy_with_x_forwarded_proto_https_may_send_keys(start):
    address = outer_address()
    flags = ("--host", address, "--trusted-proxies", f"192.0.2.200, {address}/32")
    server = start(*flags, address=address, ROOT_KEY=KEY)
    assert server.ask("/locks", Authorization=BEARER).status == 403
    assert server.ask("/locks", Authorization=BEARER, X_Forwarded_Proto="https").status == 200


def test_a_proxy_that_nobody_named_is_not_believed(start):
    address = outer_address()
    server = start("--host", address, "--trusted-proxies", "192.0.2.200", address=address, ROOT_KEY=KEY)
    assert server.ask("/locks", Authorization=BEARER, X_Forwarded_Proto="https").status == 403


def test_guessing_through_a_trusted_proxy_is_slowed_and_a_valid_key_is_not(start):
    server = start("--trusted-proxies", "127.0.0.1", ROOT_KEY=KEY)
    client = {"X_Forwarded_For": "203.0.113.5", "X_Forwarded_Proto": "https"}
    found = [server.ask("/locks", Authorization=WRONG, **client) for _ in range(22)]
    assert [answer.status for answer in found] == [401] * 20 + [429] * 2
    assert found[0].header("WWW-Authenticate") == "Bearer"
    assert 1 <= int(found[-1].header("Retry-After")) <= 60
    assert server.ask("/locks", Authorization=BEARER, **client).status == 200
    assert server.ask("/locks", Authorization=WRONG, **client | {"X_Forwarded_For": "203.0.113.6"}).status == 401


# -- settings ----------------------------------------------------------------------------------------------------


WRONG_SETTINGS = [
    ({"public_url": "holdfast.example"}, "--public-url: expected a scheme as well: https://holdfast.example"),
    ({"public_url": "ftp://holdfast.example"}, "--public-url: expected https://host[/path]"),
    ({"public_url": "https://"}, "--public-url: expected https://host[/path]"),
    ({"public_url": "https://a b"}, "--public-url: expected https://host[/path]"),
    ({"public_url": "https://a:b"}, "--public-url: expected https://host[/path]"),
    ({"public_url": "https://[::1"}, "--public-url: expected https://host[/path]"),
    (
        {"public_url": "http://holdfast.example"},
        "--public-url: must be https; http is allowed only for this machine",
    ),
    ({"public_url": "https://me:x@host"}, "--public-url: must not contain a user, a query or a fragment"),
    ({"public_url": "https://host/?a"}, "--public-url: must not contain a user, a query or a fragment"),
    ({"public_url": "https://host/#a"}, "--public-url: must not contain a user, a query or a fragment"),
    (
        {"trusted_proxies": "10.0.0.1, proxy"},
        "--trusted-proxies: 'proxy' does not appear to be an IPv4 or IPv6 network",
    ),
    ({"trusted_proxies": "10.0.0.1/8"}, "--trusted-proxies: 10.0.0.1/8 has host bits set"),
    ({"allow_insecure_http": "perhaps"}, "--allow-insecure-http: expected true or false, got 'perhaps'"),
]


@pytest.mark.parametrize(("flags", "line"), WRONG_SETTINGS)
def test_a_wrong_setting_is_named(flags, line):
    with pytest.raises(BadSettings) as refusal:
        load({"store": "memory:"} | flags, {})
    assert refusal.value.problems == [line]


def test_the_settings_come_from_variables_as_well():
    variables = {
        "HOLDFAST_PUBLIC_URL": "https://holdfast.example/api/",
        "HOLDFAST_TRUSTED_PROXIES": " 10.0.0.0/8 ,, ::1",
        "HOLDFAST_ALLOW_INSECURE_HTTP": "yes",
    }
    settings, warnings = load({"store": "memory:"}, variables)
    assert warnings == []
    assert settings.public_url == settings.home == "https://holdfast.example/api"
    assert settings.url == "http://127.0.0.1:7700"
    assert settings.trusted_proxies == ("10.0.0.0/8", "::1/128")
    assert settings.allow_insecure_http is True


def test_without_a_public_address_the_one_it_listens_on_is_shown():
    assert Settings(port=1).home == "http://127.0.0.1:1"
    assert Settings(port=1, tls_cert="x", tls_key="y", host="::1").home == "https://[::1]:1"


def test_the_public_address_is_printed_at_the_start(start):
    server = start("--public-url", "https://holdfast.example", ROOT_KEY=KEY)
    assert f"listening on http://127.0.0.1:{server.port}" in server.log()
    assert "public https://holdfast.example" in server.log()
    assert f"holdfast claim hello --url http://127.0.0.1:{server.port}" in server.log(), "its key is for this address"
