"""Allowed destinations of webhooks: special address blocks are refused, all others allowed."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.webhooks.destination import Target, is_public, octostore_url_problem, parse_url, url_problem

OPEN = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.1.0.0",
    "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0",
    "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255",
    "2000::", "2001:200::", "2001:db7:ffff::", "2001:db9::", "2003::1", "2606:4700::1111", "3ffe:ffff::", "3fff:1000::",
    "::ffff:8.8.8.8", "168.63.129.15", "168.63.129.17",
]  # fmt: skip
CLOSED = [
    str(IPv4Address(0)), "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1",
    "127.255.255.255", "169.254.0.0", "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.1", "192.0.2.1",
    "192.0.255.255", "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.168.0.1", "192.175.48.1", "198.18.0.0",
    "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.0", "255.255.255.255",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::808:808",
    "64:ff9b:1::1", "100::1", "1fff:ffff::", "2001::1", "2001:1ff:ffff::", "2001:db8::1", "2002:7f00:1::", "3fff::1",
    "3fff:fff::1", "4000::", "5f00::1", "fc00::1", "fd00::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
    "168.63.129.16", "::ffff:168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254",
    "", "localhost", "1.1.1", "08.8.8.8", "1.1.1.1 ",
]  # fmt: skip
OCTOSTORE_IPV4 = [IPv4Network(block) for block in (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/16",
    "192.168.0.0/16", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
    "240.0.0.0/4",
)]  # fmt: skip


@pytest.mark.parametrize("address", OPEN)
def test_public_addresses_are_allowed(address):
    assert is_public(address)


@pytest.mark.parametrize("address", CLOSED)
def test_special_addresses_are_refused(address):
    assert not is_public(address)


@given(st.integers(0, 2**32 - 1).map(IPv4Address))
def test_every_address_that_octostore_refuses_is_refused(address):
    if any(address in block for block in OCTOSTORE_IPV4):
        assert not is_public(str(address))
        assert not is_public(f"::ffff:{address}")


@given(st.integers(0, 2**128 - 1).map(IPv6Address))
def test_an_ipv6_address_outside_the_assigned_range_is_refused(address):
    given_out = address in IPv6Network("2000::/3") and address not in IPv6Network("2001:db8::/32")
    if address.ipv4_mapped is None and not given_out:
        assert not is_public(str(address))


@given(st.ip_addresses())
def test_addresses_that_python_calls_private_are_refused(address):
    if not address.is_global or address.is_multicast:
        mapped = getattr(address, "ipv4_mapped", None)
        assert mapped is not None or not is_public(str(address))


# -- URLs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://Example.COM:443/A?b=c", "https://example.com/A?b=c"),
        ("https://example.com:8443/x", "https://example.com:8443/x"),
        ("https://bücher.example/é", "https://xn--bcher-kva.example/%C3%A9"),
        ("https://example.com/a%20b?q=%2F", "https://example.com/a%20b?q=%2F"),
        ("http://127.0.0.1:80/", "http://127.0.0.1/"),
        ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
        ("https://0x7f000001/", "https://127.0.0.1/"),
        ("https://127.1/", "https://127.0.0.1/"),
        ("https://localhost./", "https://localhost./"),
    ],
)
def test_a_url_is_normalised(written, kept):
    assert parse_url(written).url == kept


@pytest.mark.parametrize(
    "written",
    ["", "example.com", "ftp://example.com/", "https://", "https:///x", "//example.com", "https://exa mple.com/",
     "https://example.com:99999/", "https://[::1", "https://[fe80::1%25eth0]/", "https://a..b/", "https://-a.com/",
     "https://1.2.3.4.5/", "https://999.1.1.1/", "javascript:alert(1)", "https://example.com/\n", "https://\0/",
     "https://u:p@example.com/", "https://u@example.com/", "https://" + "a" * 3000],
)  # fmt: skip
def test_an_invalid_url_is_refused(written):
    assert isinstance(parse_url(written), str)


@pytest.mark.parametrize(
    ("url", "ours", "octostore"),
    [
        ("https://example.com/", True, True),
        ("https://example.com:8443/", False, True),
        ("http://example.com/", False, False),
        ("https://8.8.8.8/", False, True),
        ("https://10.0.0.1/", False, False),
        ("https://2130706433/", False, False),
        ("https://[::1]/", False, False),
        ("https://[2606:4700::1111]/", False, True),
        ("https://LOCALHOST/", False, False),
        ("https://localhost./", False, True),
    ],
)
def test_each_webhook_family_has_its_url_rule_and_operators_may_disable_it(url, ours, octostore):
    target = parse_url(url)
    assert isinstance(target, Target)
    assert (url_problem(target, private=False) is None) == ours
    assert (octostore_url_problem(target, private=False) is None) == octostore
    assert url_problem(target, private=True) is octostore_url_problem(target, private=True) is None
