"""Fake PayPal: a new one for each test of the provider, a shared one for the servers."""

import pytest

from tests.billing.fake_paypal import CLIENT_ID, SECRET, FakePayPal
from tests.billing.purchases import new_account
from tests.compat.octostore.server import Server
from tests.http.job_client import fresh
from tests.store_inspection import assert_store_is_consistent

PUBLIC_URL = "https://agents.test/holdfast"


@pytest.fixture
def new_paypal():
    stand_in = FakePayPal().start()
    yield stand_in
    stand_in.stop()


@pytest.fixture(scope="package")
def shared_paypal():
    stand_in = FakePayPal().start()
    yield stand_in
    stand_in.stop()


@pytest.fixture
def paypal(shared_paypal):
    """The shared fake PayPal, without simulated failures."""
    shared_paypal.reset()
    yield shared_paypal
    shared_paypal.reset()


def shop(url, paypal):
    """A server with limits and a merchant."""
    merchant = {"PAYPAL_CLIENT_ID": CLIENT_ID, "PAYPAL_SECRET": SECRET, "PAYPAL_URL": paypal.url}
    return Server(url, PLAN="free", PUBLIC_URL=PUBLIC_URL, TRUSTED_PROXIES="127.0.0.1", **merchant)


def running(server):
    yield server.start()
    server.stop()
    assert_store_is_consistent(server.store)
    server.close()


@pytest.fixture(scope="package")
def sqlite_shop(tmp_path_factory, shared_paypal):
    yield from running(shop(f"sqlite:///{tmp_path_factory.mktemp('shop')}/x.db", shared_paypal))


@pytest.fixture(scope="package")
def postgres_shop(new_postgres_database, shared_paypal):
    yield from running(shop(new_postgres_database(), shared_paypal))


@pytest.fixture(scope="package")
def closed_shop(tmp_path_factory):
    """A server with default settings: no limits and no merchant."""
    yield from running(Server(f"sqlite:///{tmp_path_factory.mktemp('closed')}/x.db"))


@pytest.fixture(params=["sqlite", "postgres"])
def store(request):
    return request.param


@pytest.fixture
def server(request, store):
    return request.getfixturevalue(f"{store}_shop")


@pytest.fixture
def account(server):
    """A new account without a purchase."""
    return new_account(server)


@pytest.fixture
def stranger(server):
    return new_account(server)


@pytest.fixture
def new_store_url(request, store, tmp_path):
    """The address of an empty store."""
    if store == "postgres":
        return request.getfixturevalue("new_postgres_database")()
    return f"sqlite:///{tmp_path}/{fresh('x')}.db"
