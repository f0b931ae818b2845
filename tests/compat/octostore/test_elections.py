"""Anonymous rooms: whoever campaigns first leads, and proves it with a token nobody else was shown."""

import base64
import re

import pytest

from tests.compat.octostore.expect import assert_lasts, assert_wait, leads, malformed, refused, success
from tests.compat.octostore.server import bearer

SOMEBODYS_TOKEN = "VQ6EAOKbQdSnFkRmVUQAAFUOhADim0HUpxZEZlVEAAE"


def told(leader):
    """What OctoStore tells of a leader; there may be more."""
    return {key: leader[key] for key in ("candidate_id", "metadata", "term", "expires_at") if key in leader}


def follows(answer):
    """Somebody else leads, and the caller is shown who, but not the proof."""
    body = success(answer)
    assert body["status"] == "follower", body
    assert "leader_token" not in body
    assert_wait(body["retry_after_ms"], until=body["leader"]["expires_at"])
    return body


# Rooms.


def test_a_new_room_has_an_id_and_its_paths(anyone):
    room = success(anyone.post("/elections"), 201)
    assert re.fullmatch(r"[A-Za-z0-9_-]{32}", room["election_id"])
    assert room["campaign_path"] == f"/elections/{room['election_id']}/campaign"
    assert room["status_path"] == f"/elections/{room['election_id']}"
    assert room["watch_path"] == f"/elections/{room['election_id']}/watch"


def test_new_rooms_differ(anyone):
    assert len({success(anyone.post("/elections"), 201)["election_id"] for _ in range(5)}) == 5


def test_a_new_room_can_be_led(anyone):
    leads(anyone.post(success(anyone.post("/elections"), 201)["campaign_path"], {"candidate_id": "c"}))


def test_any_well_formed_id_is_a_vacant_room(anyone, room):
    seen = success(anyone.get(f"/elections/{room}"))
    assert (seen["election_id"], seen["status"], seen["retry_after_ms"]) == (room, "vacant", 0)
    assert "leader" not in seen


def test_a_credential_that_is_not_asked_for_is_not_looked_at(anyone, room):
    assert success(bearer(anyone.port, "nobody-knows-this-token-at-all").get(f"/elections/{room}"))


# Campaigning.


def test_the_first_candidate_leads_for_thirty_seconds(anyone, room):
    mine = leads(anyone.campaign(room, "first"))
    assert mine["election_id"] == room
    assert mine["leader"]["candidate_id"] == "first"
    assert "metadata" not in mine["leader"]
    assert_lasts(mine["leader"]["expires_at"], 30)
    assert mine["renew_after_ms"] == 15_000


@pytest.mark.parametrize("ttl", [5, 7, 300])
def test_a_leader_renews_after_exactly_half_the_ttl(anyone, room, ttl):
    mine = leads(anyone.campaign(room, ttl_seconds=ttl))
    assert mine["renew_after_ms"] == ttl * 500
    assert_lasts(mine["leader"]["expires_at"], ttl)


def test_a_leader_token_is_thirty_two_bytes_in_43_characters(anyone, room):
    token = leads(anyone.campaign(room))["leader_token"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", token)
    assert len(base64.urlsafe_b64decode(f"{token}=")) == 32


def test_null_for_an_optional_field_of_a_campaign_is_as_good_as_nothing(anyone, room):
    mine = leads(anyone.campaign(room, ttl_seconds=None, metadata=None))
    assert mine["renew_after_ms"] == 15_000
    assert "metadata" not in mine["leader"]


def test_the_second_candidate_follows_the_first(anyone, room):
    mine = leads(anyone.campaign(room, "first", metadata="at desk 4"))
    answer = follows(anyone.campaign(room, "second", metadata="elsewhere"))
    assert answer["election_id"] == room
    assert told(answer["leader"]) == told(mine["leader"])
    assert answer["leader"]["metadata"] == "at desk 4"


def test_a_leader_who_campaigns_again_follows_himself(anyone, room):
    mine = leads(anyone.campaign(room, "first"))
    answer = follows(anyone.campaign(room, "first", ttl_seconds=300))
    assert told(answer["leader"]) == told(mine["leader"])


def test_everybody_can_see_who_leads(anyone, room):
    mine = leads(anyone.campaign(room, "first", metadata="note"))
    answer = anyone.get(f"/elections/{room}")
    seen = success(answer)
    assert (seen["election_id"], seen["status"]) == (room, "leader")
    assert told(seen["leader"]) == told(mine["leader"])
    assert_wait(seen["retry_after_ms"], until=mine["leader"]["expires_at"])
    assert mine["leader_token"] not in answer.raw.decode()


def test_a_room_is_no_lock_in_anybodys_list(anyone, alice, room):
    leads(anyone.campaign(room))
    assert success(alice.get("/locks?prefix=__election"))["total"] == 0


# Renewing and resigning.


def test_renewing_keeps_token_term_and_metadata(anyone, room):
    mine = leads(anyone.campaign(room, "first", metadata="note"))
    renewed = leads(anyone.renew_leadership(room, mine["leader_token"], ttl_seconds=100))
    assert renewed["leader_token"] == mine["leader_token"]
    assert renewed["renew_after_ms"] == 50_000
    assert_lasts(renewed["leader"]["expires_at"], 100)
    assert told(renewed["leader"]) == {**told(mine["leader"]), "expires_at": renewed["leader"]["expires_at"]}


def test_renewing_defaults_to_thirty_seconds_and_may_shorten(anyone, room):
    mine = leads(anyone.campaign(room, ttl_seconds=300))
    renewed = leads(anyone.renew_leadership(room, mine["leader_token"]))
    assert renewed["renew_after_ms"] == 15_000
    assert_lasts(success(anyone.get(f"/elections/{room}"))["leader"]["expires_at"], 30)


def test_resigning_leaves_the_room_vacant(anyone, room):
    mine = leads(anyone.campaign(room))
    answer = success(anyone.resign(room, mine["leader_token"]))
    assert (answer["election_id"], answer["status"]) == (room, "vacant")
    assert answer["previous_term"] == mine["leader"]["term"]
    assert success(anyone.get(f"/elections/{room}"))["status"] == "vacant"


def test_after_a_resignation_the_next_candidate_leads_at_once(anyone, room):
    mine = leads(anyone.campaign(room))
    success(anyone.resign(room, mine["leader_token"]))
    successor = leads(anyone.campaign(room, "second"))
    assert successor["leader"]["term"] > mine["leader"]["term"]
    assert successor["leader_token"] != mine["leader_token"]


@pytest.mark.parametrize("ttl", [0, 4, 301, 4_294_967_295, None])
def test_resigning_reads_a_ttl_but_does_not_mind_its_value(anyone, room, ttl):
    mine = leads(anyone.campaign(room))
    success(anyone.resign(room, mine["leader_token"], ttl_seconds=ttl))


@pytest.mark.parametrize("ttl", ["30", -1, 1.5, 4_294_967_296, True])
def test_resigning_minds_the_type_of_a_ttl(anyone, room, ttl):
    mine = leads(anyone.campaign(room))
    malformed(anyone.resign(room, mine["leader_token"], ttl_seconds=ttl), 422)
    assert success(anyone.get(f"/elections/{room}"))["status"] == "leader"


@pytest.fixture(params=["renew_leadership", "resign"])
def leader_write(request):
    return lambda caller, *arguments: getattr(caller, request.param)(*arguments)


BAD_TOKENS = {
    "empty": "",
    "short": SOMEBODYS_TOKEN[:-1],
    "long": SOMEBODYS_TOKEN + "A",
    "padded": SOMEBODYS_TOKEN + "=",
    "standard-alphabet": SOMEBODYS_TOKEN[:-2] + "+E",
    "space": SOMEBODYS_TOKEN[:-2] + " E",
    "unicode": SOMEBODYS_TOKEN[:-2] + "éE",
    "nonsense": "nonsense",
}


@pytest.mark.parametrize("token", BAD_TOKENS.values(), ids=BAD_TOKENS)
def test_a_malformed_token_is_refused(anyone, room, leader_write, token):
    refused(leader_write(anyone, room, token), 400, "invalid_input")


def test_a_vacant_room_has_no_current_leader(anyone, room, leader_write):
    refused(leader_write(anyone, room, SOMEBODYS_TOKEN), 404, "lease_not_current")


def test_a_leader_who_resigned_is_not_current(anyone, room, leader_write):
    mine = leads(anyone.campaign(room))
    success(anyone.resign(room, mine["leader_token"]))
    refused(leader_write(anyone, room, mine["leader_token"]), 404, "lease_not_current")


def test_somebody_elses_token_is_refused_in_a_led_room(anyone, room, leader_write):
    leads(anyone.campaign(room))
    refused(leader_write(anyone, room, SOMEBODYS_TOKEN), 400, "lease_not_current")
    assert success(anyone.get(f"/elections/{room}"))["status"] == "leader"


def test_a_former_leaders_token_is_refused_under_a_successor(anyone, room, leader_write):
    former = leads(anyone.campaign(room))
    success(anyone.resign(room, former["leader_token"]))
    leads(anyone.campaign(room))
    refused(leader_write(anyone, room, former["leader_token"]), 400, "lease_not_current")


def test_a_token_of_half_the_truth_is_refused(anyone, room, leader_write):
    token = leads(anyone.campaign(room))["leader_token"]
    whole = base64.urlsafe_b64decode(f"{token}=")
    for half in (whole[:16] + bytes(16), bytes(16) + whole[16:]):
        forged = base64.urlsafe_b64encode(half).decode().rstrip("=")
        refused(leader_write(anyone, room, forged), 400, "lease_not_current")


@pytest.mark.parametrize("verb", ["renew", "resign"])
@pytest.mark.parametrize("body", [{}, {"leader_token": None}, {"leader_token": 1}], ids=["absent", "null", "number"])
def test_proof_of_leadership_must_be_given_as_text(anyone, room, verb, body):
    malformed(anyone.post(f"/elections/{room}/{verb}", body), 422)
