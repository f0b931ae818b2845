"""What a room and a candidate may be called, how long a term may be, and which refusal comes first."""

import pytest

from tests.compat.octostore.expect import leads, malformed, refused, success

SOMEBODYS_TOKEN = "VQ6EAOKbQdSnFkRmVUQAAFUOhADim0HUpxZEZlVEAAE"

CALLS = {
    "status": lambda caller, room: caller.get(f"/elections/{room}"),
    "campaign": lambda caller, room: caller.campaign(room),
    "renew": lambda caller, room: caller.renew_leadership(room, SOMEBODYS_TOKEN),
    "resign": lambda caller, room: caller.resign(room, SOMEBODYS_TOKEN),
}
BAD_ROOMS = {
    "7-characters": "a" * 7,
    "65-characters": "a" * 65,
    "dot": "aaaa.aaaa",
    "encoded-slash": "aaaa%2Faaaa",
    "space": "aaaa%20aaaa",
    "unicode": "%C3%A9" * 8,
    "plus": "aaaa+aaaa",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("bad_room", BAD_ROOMS.values(), ids=BAD_ROOMS)
def test_an_id_outside_the_grammar_is_refused(anyone, call, bad_room):
    refused(call(anyone, bad_room), 400, "invalid_input")


@pytest.mark.parametrize("call", ["campaign", "renew", "resign"])
def test_an_empty_id_inside_a_path_reaches_the_grammar(anyone, call):
    refused(CALLS[call](anyone, ""), 400, "invalid_input")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_id_that_is_no_text_is_no_request(anyone, call):
    malformed(call(anyone, "aaaaaaaa%FF"), 400)


@pytest.mark.parametrize("good_room", ["aB3_-678", "b" * 64], ids=["8", "64"])
def test_an_id_on_the_bounds_is_welcome(anyone, good_room):
    success(anyone.get(f"/elections/{good_room}"))


@pytest.mark.parametrize("candidate", ["c", "a.Z_0:9@x-", "@", "c" * 64], ids=["one", "every-kind", "at", "64"])
def test_a_candidate_within_the_grammar_is_welcome(anyone, room, candidate):
    assert leads(anyone.campaign(room, candidate))["leader"]["candidate_id"] == candidate


@pytest.mark.parametrize(
    "candidate", ["", "c" * 65, "a b", "a/b", "é", "a!"], ids=["empty", "65", "space", "slash", "unicode", "mark"]
)
def test_a_candidate_outside_the_grammar_is_refused(anyone, room, candidate):
    refused(anyone.campaign(room, candidate), 400, "invalid_input")
    assert success(anyone.get(f"/elections/{room}"))["status"] == "vacant"


@pytest.mark.parametrize("body", [{}, {"candidate_id": None}, {"candidate_id": 7}], ids=["absent", "null", "number"])
def test_a_candidate_must_be_named_in_text(anyone, room, body):
    malformed(anyone.post(f"/elections/{room}/campaign", body), 422)


@pytest.mark.parametrize("ttl", [0, 4, 301, 4_294_967_295])
def test_an_election_ttl_out_of_bounds_is_refused(anyone, room, ttl):
    refused(anyone.campaign(room, ttl_seconds=ttl), 400, "invalid_ttl")
    refused(anyone.renew_leadership(room, SOMEBODYS_TOKEN, ttl_seconds=ttl), 400, "invalid_ttl")


@pytest.mark.parametrize("metadata", ["m" * 1024, "😀" * 1024], ids=["ascii", "astral"])
def test_metadata_of_1024_code_points_is_welcome(anyone, room, metadata):
    assert leads(anyone.campaign(room, metadata=metadata))["leader"]["metadata"] == metadata


def test_metadata_over_1024_code_points_is_refused(anyone, room):
    refused(anyone.campaign(room, metadata="m" * 1025), 400, "invalid_input")


# Which refusal comes first.


def test_a_campaign_checks_candidate_and_metadata_before_the_ttl(anyone, room):
    refused(anyone.campaign(room, "a b", ttl_seconds=4), 400, "invalid_input")
    refused(anyone.campaign(room, metadata="m" * 1025, ttl_seconds=4), 400, "invalid_input")


def test_a_renewal_checks_the_id_before_the_ttl_and_the_ttl_before_the_token(anyone, room):
    refused(anyone.renew_leadership("short", "nonsense", ttl_seconds=4), 400, "invalid_input")
    refused(anyone.renew_leadership(room, "nonsense", ttl_seconds=4), 400, "invalid_ttl")
