"""Bounds of election ids, candidates, TTL and metadata, and the order of the checks."""

import pytest

from tests.compat.octostore.expect import leads, malformed, refused, success

OTHER_TOKEN = "VQ6EAOKbQdSnFkRmVUQAAFUOhADim0HUpxZEZlVEAAE"

CALLS = {
    "status": lambda caller, election: caller.get(f"/elections/{election}"),
    "campaign": lambda caller, election: caller.campaign(election),
    "renew": lambda caller, election: caller.renew_leadership(election, OTHER_TOKEN),
    "resign": lambda caller, election: caller.resign(election, OTHER_TOKEN),
}
BAD_IDS = {
    "7-characters": "a" * 7,
    "65-characters": "a" * 65,
    "dot": "aaaa.aaaa",
    "encoded-slash": "aaaa%2Faaaa",
    "space": "aaaa%20aaaa",
    "unicode": "%C3%A9" * 8,
    "plus": "aaaa+aaaa",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("bad_id", BAD_IDS.values(), ids=BAD_IDS)
def test_an_invalid_election_id_is_refused(anyone, call, bad_id):
    refused(call(anyone, bad_id), 400, "invalid_input")


@pytest.mark.parametrize("call", ["campaign", "renew", "resign"])
def test_an_empty_election_id_is_refused_as_invalid(anyone, call):
    refused(CALLS[call](anyone, ""), 400, "invalid_input")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_election_id_that_is_not_utf_8_is_refused(anyone, call):
    malformed(call(anyone, "aaaaaaaa%FF"), 400)


@pytest.mark.parametrize("good_id", ["aB3_-678", "b" * 64], ids=["8", "64"])
def test_an_election_id_at_its_bounds_is_accepted(anyone, good_id):
    success(anyone.get(f"/elections/{good_id}"))


@pytest.mark.parametrize("candidate", ["c", "a.Z_0:9@x-", "@", "c" * 64], ids=["one", "every-kind", "at", "64"])
def test_a_valid_candidate_id_is_accepted(anyone, election, candidate):
    assert leads(anyone.campaign(election, candidate))["leader"]["candidate_id"] == candidate


@pytest.mark.parametrize(
    "candidate", ["", "c" * 65, "a b", "a/b", "é", "a!"], ids=["empty", "65", "space", "slash", "unicode", "mark"]
)
def test_an_invalid_candidate_id_is_refused(anyone, election, candidate):
    refused(anyone.campaign(election, candidate), 400, "invalid_input")
    assert success(anyone.get(f"/elections/{election}"))["status"] == "vacant"


@pytest.mark.parametrize("body", [{}, {"candidate_id": None}, {"candidate_id": 7}], ids=["absent", "null", "number"])
def test_candidate_id_must_be_a_string(anyone, election, body):
    malformed(anyone.post(f"/elections/{election}/campaign", body), 422)


@pytest.mark.parametrize("ttl", [0, 4, 301, 4_294_967_295])
def test_an_election_ttl_out_of_bounds_is_refused(anyone, election, ttl):
    refused(anyone.campaign(election, ttl_seconds=ttl), 400, "invalid_ttl")
    refused(anyone.renew_leadership(election, OTHER_TOKEN, ttl_seconds=ttl), 400, "invalid_ttl")


@pytest.mark.parametrize("metadata", ["m" * 1024, "😀" * 1024], ids=["ascii", "astral"])
def test_metadata_of_1024_code_points_is_accepted(anyone, election, metadata):
    assert leads(anyone.campaign(election, metadata=metadata))["leader"]["metadata"] == metadata


def test_metadata_over_1024_code_points_is_refused(anyone, election):
    refused(anyone.campaign(election, metadata="m" * 1025), 400, "invalid_input")


# Which refusal comes first.


def test_a_campaign_checks_candidate_and_metadata_before_the_ttl(anyone, election):
    refused(anyone.campaign(election, "a b", ttl_seconds=4), 400, "invalid_input")
    refused(anyone.campaign(election, metadata="m" * 1025, ttl_seconds=4), 400, "invalid_input")


def test_a_renewal_checks_the_id_before_the_ttl_and_the_ttl_before_the_token(anyone, election):
    refused(anyone.renew_leadership("short", "nonsense", ttl_seconds=4), 400, "invalid_input")
    refused(anyone.renew_leadership(election, "nonsense", ttl_seconds=4), 400, "invalid_ttl")
