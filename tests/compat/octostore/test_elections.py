"""Elections: the first candidate leads, and proves it with its leader token."""

import base64
import re

import pytest

from holdfast.transport.http.octostore import elections
from tests.compat.octostore.expect import assert_lasts, assert_wait, leads, malformed, refused, success
from tests.compat.octostore.server import bearer

OTHER_TOKEN = "VQ6EAOKbQdSnFkRmVUQAAFUOhADim0HUpxZEZlVEAAE"


def next_document(leader):
    """The fields that OctoStore returns about a leader; further fields are allowed."""
    return {key: leader[key] for key in ("candidate_id", "metadata", "term", "expires_at") if key in leader}


def follows(answer):
    """Another candidate leads: the answer names it, without its leader token."""
    body = success(answer)
    assert body["status"] == "follower", body
    assert "leader_token" not in body
    assert_wait(body["retry_after_ms"], until=body["leader"]["expires_at"])
    return body


# Creating.


def test_a_new_election_has_an_id_and_its_paths(anyone):
    election = success(anyone.post("/elections"), 201)
    assert re.fullmatch(r"[A-Za-z0-9_-]{32}", election["election_id"])
    assert election["campaign_path"] == f"/elections/{election['election_id']}/campaign"
    assert election["status_path"] == f"/elections/{election['election_id']}"
    assert election["watch_path"] == f"/elections/{election['election_id']}/watch"


def test_new_elections_differ(anyone):
    assert len({success(anyone.post("/elections"), 201)["election_id"] for _ in range(5)}) == 5


def test_no_new_id_looks_like_an_option_of_a_command_line():
    assert not any(elections._new_election_id().startswith("-") for _ in range(2_000))


def test_a_new_election_can_be_led(anyone):
    leads(anyone.post(success(anyone.post("/elections"), 201)["campaign_path"], {"candidate_id": "c"}))


def test_any_valid_election_id_is_vacant(anyone, election):
    observed = success(anyone.get(f"/elections/{election}"))
    assert (observed["election_id"], observed["status"], observed["retry_after_ms"]) == (election, "vacant", 0)
    assert "leader" not in observed


def test_elections_ignore_credentials(anyone, election):
    assert success(bearer(anyone.port, "nobody-knows-this-token-at-all").get(f"/elections/{election}"))


# Campaigning.


def test_the_first_candidate_leads_for_thirty_seconds(anyone, election):
    mine = leads(anyone.campaign(election, "first"))
    assert mine["election_id"] == election
    assert mine["leader"]["candidate_id"] == "first"
    assert "metadata" not in mine["leader"]
    assert_lasts(mine["leader"]["expires_at"], 30)
    assert mine["renew_after_ms"] == 15_000


@pytest.mark.parametrize("ttl", [5, 7, 300])
def test_a_leader_renews_after_exactly_half_the_ttl(anyone, election, ttl):
    mine = leads(anyone.campaign(election, ttl_seconds=ttl))
    assert mine["renew_after_ms"] == ttl * 500
    assert_lasts(mine["leader"]["expires_at"], ttl)


def test_a_leader_token_is_thirty_two_bytes_in_43_characters(anyone, election):
    token = leads(anyone.campaign(election))["leader_token"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", token)
    assert len(base64.urlsafe_b64decode(f"{token}=")) == 32


def test_null_for_an_optional_field_of_a_campaign_means_omitted(anyone, election):
    mine = leads(anyone.campaign(election, ttl_seconds=None, metadata=None))
    assert mine["renew_after_ms"] == 15_000
    assert "metadata" not in mine["leader"]


def test_the_second_candidate_follows_the_first(anyone, election):
    mine = leads(anyone.campaign(election, "first", metadata="at desk 4"))
    answer = follows(anyone.campaign(election, "second", metadata="elsewhere"))
    assert answer["election_id"] == election
    assert next_document(answer["leader"]) == next_document(mine["leader"])
    assert answer["leader"]["metadata"] == "at desk 4"


def test_a_leader_that_campaigns_again_gets_status_follower(anyone, election):
    mine = leads(anyone.campaign(election, "first"))
    answer = follows(anyone.campaign(election, "first", ttl_seconds=300))
    assert next_document(answer["leader"]) == next_document(mine["leader"])


def test_every_client_can_read_the_leader(anyone, election):
    mine = leads(anyone.campaign(election, "first", metadata="note"))
    answer = anyone.get(f"/elections/{election}")
    observed = success(answer)
    assert (observed["election_id"], observed["status"]) == (election, "leader")
    assert next_document(observed["leader"]) == next_document(mine["leader"])
    assert_wait(observed["retry_after_ms"], until=mine["leader"]["expires_at"])
    assert mine["leader_token"] not in answer.raw.decode()


def test_elections_are_not_in_the_list_of_locks(anyone, alice, election):
    leads(anyone.campaign(election))
    assert success(alice.get("/locks?prefix=__election"))["total"] == 0


# Renewing and resigning.


def test_renewing_keeps_token_term_and_metadata(anyone, election):
    mine = leads(anyone.campaign(election, "first", metadata="note"))
    renewed = leads(anyone.renew_leadership(election, mine["leader_token"], ttl_seconds=100))
    assert renewed["leader_token"] == mine["leader_token"]
    assert renewed["renew_after_ms"] == 50_000
    assert_lasts(renewed["leader"]["expires_at"], 100)
    assert next_document(renewed["leader"]) == {
        **next_document(mine["leader"]),
        "expires_at": renewed["leader"]["expires_at"],
    }


def test_renewing_defaults_to_thirty_seconds_and_may_shorten(anyone, election):
    mine = leads(anyone.campaign(election, ttl_seconds=300))
    renewed = leads(anyone.renew_leadership(election, mine["leader_token"]))
    assert renewed["renew_after_ms"] == 15_000
    assert_lasts(success(anyone.get(f"/elections/{election}"))["leader"]["expires_at"], 30)


def test_resigning_leaves_the_election_vacant(anyone, election):
    mine = leads(anyone.campaign(election))
    answer = success(anyone.resign(election, mine["leader_token"]))
    assert (answer["election_id"], answer["status"]) == (election, "vacant")
    assert answer["previous_term"] == mine["leader"]["term"]
    assert success(anyone.get(f"/elections/{election}"))["status"] == "vacant"


def test_after_a_resignation_the_next_candidate_leads_at_once(anyone, election):
    mine = leads(anyone.campaign(election))
    success(anyone.resign(election, mine["leader_token"]))
    successor = leads(anyone.campaign(election, "second"))
    assert successor["leader"]["term"] > mine["leader"]["term"]
    assert successor["leader_token"] != mine["leader_token"]


@pytest.mark.parametrize("ttl", [0, 4, 301, 4_294_967_295, None])
def test_resigning_ignores_the_value_of_ttl_seconds(anyone, election, ttl):
    mine = leads(anyone.campaign(election))
    success(anyone.resign(election, mine["leader_token"], ttl_seconds=ttl))


@pytest.mark.parametrize("ttl", ["30", -1, 1.5, 4_294_967_296, True])
def test_resigning_checks_the_type_of_ttl_seconds(anyone, election, ttl):
    mine = leads(anyone.campaign(election))
    malformed(anyone.resign(election, mine["leader_token"], ttl_seconds=ttl), 422)
    assert success(anyone.get(f"/elections/{election}"))["status"] == "leader"


@pytest.fixture(params=["renew_leadership", "resign"])
def leader_write(request):
    return lambda caller, *arguments: getattr(caller, request.param)(*arguments)


BAD_TOKENS = {
    "empty": "",
    "short": OTHER_TOKEN[:-1],
    "long": OTHER_TOKEN + "A",
    "padded": OTHER_TOKEN + "=",
    "standard-alphabet": OTHER_TOKEN[:-2] + "+E",
    "space": OTHER_TOKEN[:-2] + " E",
    "unicode": OTHER_TOKEN[:-2] + "éE",
    "nonsense": "nonsense",
}


@pytest.mark.parametrize("token", BAD_TOKENS.values(), ids=BAD_TOKENS)
def test_a_malformed_token_is_refused(anyone, election, leader_write, token):
    refused(leader_write(anyone, election, token), 400, "invalid_input")


def test_a_vacant_election_has_no_current_leader(anyone, election, leader_write):
    refused(leader_write(anyone, election, OTHER_TOKEN), 404, "lease_not_current")


def test_a_leader_who_resigned_is_not_current(anyone, election, leader_write):
    mine = leads(anyone.campaign(election))
    success(anyone.resign(election, mine["leader_token"]))
    refused(leader_write(anyone, election, mine["leader_token"]), 404, "lease_not_current")


def test_the_token_of_another_candidate_is_refused(anyone, election, leader_write):
    leads(anyone.campaign(election))
    refused(leader_write(anyone, election, OTHER_TOKEN), 400, "lease_not_current")
    assert success(anyone.get(f"/elections/{election}"))["status"] == "leader"


def test_a_former_leaders_token_is_refused_under_a_successor(anyone, election, leader_write):
    former = leads(anyone.campaign(election))
    success(anyone.resign(election, former["leader_token"]))
    leads(anyone.campaign(election))
    refused(leader_write(anyone, election, former["leader_token"]), 400, "lease_not_current")


def test_a_token_with_one_correct_half_is_refused(anyone, election, leader_write):
    token = leads(anyone.campaign(election))["leader_token"]
    whole = base64.urlsafe_b64decode(f"{token}=")
    for half in (whole[:16] + bytes(16), bytes(16) + whole[16:]):
        forged = base64.urlsafe_b64encode(half).decode().rstrip("=")
        refused(leader_write(anyone, election, forged), 400, "lease_not_current")


@pytest.mark.parametrize("verb", ["renew", "resign"])
@pytest.mark.parametrize("body", [{}, {"leader_token": None}, {"leader_token": 1}], ids=["absent", "null", "number"])
def test_leader_token_must_be_a_string(anyone, election, verb, body):
    malformed(anyone.post(f"/elections/{election}/{verb}", body), 422)
