"""Messages on their way: signed, in order, tried again, given up, sent once more; on every store."""

import base64
from collections import Counter

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.http.job_client import claimed, fresh, ok
from tests.http.metrics_parser import scrape
from tests.support import wait_until


def deliveries(boss, made, query=""):
    return ok(boss.get(f"/v1/webhooks/{made['webhook_id']}/deliveries{query}"))["deliveries"]


def states(boss, made):
    return ok(boss.get(f"/v1/webhooks/{made['webhook_id']}"))["deliveries"]


def patch(boss, path, body):
    return boss.send_json("PATCH", path, body)


def tell(boss, subject, times=1):
    """So many events about one job: claimed, then renewed."""
    lease = claimed(boss.claim(subject))["lease_id"]
    for _ in range(times - 1):
        ok(boss.heartbeat(subject, lease))
    return lease


def test_an_event_arrives_signed_and_whole(boss, hook, receiver, path):
    job = fresh()
    made = hook(receiver.url(path), events=["lease.*"], subject=f"lease:{job}")
    assert made["secret"].startswith("whsec_")
    assert len(base64.b64decode(made["secret"].removeprefix("whsec_"))) == 32
    tell(boss, job)
    (message,) = receiver.await_messages(path, 1)
    message.verify(made["secret"])
    body = message.json
    assert (body["type"], body["data"]["subject"], body["timestamp"]) == (
        "lease.claimed",
        f"lease:{job}",
        body["data"]["at"],
    )
    assert body["data"]["data"]["owner"] == "somebody"
    assert message.headers["user-agent"].startswith("Holdfast-Webhook/")
    assert message.headers["content-type"] == "application/json"
    assert message.id.endswith(f"_{message.seq}")
    assert not {"proof", "holder"} & body["data"]["data"].keys()
    with pytest.raises(WebhookVerificationError):
        Webhook(made["secret"]).verify(message.raw.replace(b"claimed", b"renewed"), message.headers)
    wait_until(lambda: states(boss, made) == {"delivered": 1})
    (seen,) = deliveries(boss, made)
    assert (seen["state"], seen["attempts"], seen["status"], seen["message_id"]) == ("delivered", 1, 204, message.id)


def test_only_what_the_filters_name_is_told_and_nothing_from_before(boss, hook, receiver, path):
    mine, other = fresh("deploy"), fresh()
    tell(boss, mine)
    hook(receiver.url(path), events=["lease.renewed", "task.*"], subject="lease:deploy*")
    first, second = fresh("deploy"), fresh("deploy")
    tell(boss, other, 2)
    tell(boss, first, 3)
    tell(boss, second, 2)
    told = receiver.await_messages(path, 3)
    assert [message.json["type"] for message in told] == ["lease.renewed"] * 3
    assert sorted(message.subject for message in told) == sorted([f"lease:{first}"] * 2 + [f"lease:{second}"])


def test_a_failure_is_tried_again_under_the_same_id_before_anything_later_of_its_subject(boss, hook, receiver, path):
    first, second = fresh(), fresh()
    made = hook(receiver.url(path, 500, 302, 204), events=["lease.*"])
    tell(boss, first, 3)
    told = receiver.await_messages(path, 5)
    assert [message.seq for message in told] == [told[0].seq] * 3 + [told[0].seq + 1, told[0].seq + 2]
    assert len({message.id for message in told}) == 3
    for message in told:
        message.verify(made["secret"])
    assert told[1].at - told[0].at >= 0.2
    assert told[2].at - told[1].at >= 0.3
    tell(boss, second)
    receiver.await_messages(path, 6)
    wait_until(lambda: states(boss, made) == {"delivered": 4})


def test_what_nobody_took_is_a_dead_letter_that_can_be_sent_again(boss, hook, receiver, path):
    job = fresh()
    made = hook(receiver.url(path, 500, 503, 404, 204), events=["lease.*"], subject=f"lease:{job}")
    tell(boss, job, 2)
    wait_until(lambda: states(boss, made) == {"dead": 1, "delivered": 1}, 20)
    (dead,) = deliveries(boss, made, "?state=dead")
    assert (dead["attempts"], dead["status"], dead["error"]) == (3, 404, "status 404")
    told = receiver.on(path)
    assert [message.seq for message in told] == [dead["seq"]] * 3 + [dead["seq"] + 1]
    assert ok(boss.post(f"/v1/webhooks/{made['webhook_id']}/replay", {}))["replayed"] == 1
    again = receiver.await_messages(path, 5)[4]
    assert again.id == dead["message_id"]
    again.verify(made["secret"])
    wait_until(lambda: states(boss, made) == {"delivered": 2})
    everything = ok(boss.post(f"/v1/webhooks/{made['webhook_id']}/replay", {"after": 0}))
    assert everything["replayed"] == 2
    receiver.await_messages(path, 7)
    one = ok(boss.post(f"/v1/webhooks/{made['webhook_id']}/replay", {"seq": dead["seq"]}))
    assert one["replayed"] == 1
    receiver.await_messages(path, 8)


def test_attempts_are_counted_by_what_came_of_them(server, boss, hook, receiver, path):
    def attempts():
        page = scrape(server.admin.get("/metrics/prometheus").raw, openmetrics=False)
        return Counter({labels["outcome"]: many for labels, many in page.samples("holdfast_webhook_deliveries_total")})

    before, job = attempts(), fresh()
    made = hook(receiver.url(path, 500, 503, 404, 204), events=["lease.*"], subject=f"lease:{job}")
    tell(boss, job, 2)
    wait_until(lambda: states(boss, made) == {"dead": 1, "delivered": 1}, 20)
    assert attempts() - before == {"failed": 2, "dead": 1, "delivered": 1}


def test_one_who_fails_holds_up_nobody_else(boss, hook, receiver, path):
    bad, good = f"{path}/bad", f"{path}/good"
    hook(receiver.url(bad, 500), events=["lease.*"])
    hook(receiver.url(good), events=["lease.*"])
    for _ in range(3):
        tell(boss, fresh(), 2)
    assert len({message.id for message in receiver.await_messages(good, 6)}) == 6
    assert len({message.subject for message in receiver.await_messages(bad, 3)}) == 3


def test_a_pause_keeps_what_happens_for_later(boss, hook, receiver, path):
    made = hook(receiver.url(path), events=["lease.*"])
    where = f"/v1/webhooks/{made['webhook_id']}"
    paused = ok(patch(boss, where, {"state": "paused"}))
    assert (paused["state"], paused["reason"]) == ("paused", "by request")
    first, second = fresh(), fresh()
    tell(boss, first, 2)
    hook(receiver.url(f"{path}/other"), events=["lease.*"])
    tell(boss, second)
    receiver.await_messages(f"{path}/other", 1)
    assert receiver.on(path) == []
    resumed = ok(patch(boss, where, {"state": "active"}))
    assert (resumed["state"], resumed["reason"]) == ("active", None)
    told = [message.subject for message in receiver.await_messages(path, 3)]
    assert sorted(told) == sorted([f"lease:{first}"] * 2 + [f"lease:{second}"])


def test_both_secrets_sign_while_one_replaces_the_other(boss, hook, receiver, path):
    made = hook(receiver.url(path), events=["lease.*"])
    where = f"/v1/webhooks/{made['webhook_id']}"
    rotated = ok(boss.post(f"{where}/rotate", {"grace_seconds": 3600}))
    assert rotated["secret"] != made["secret"]
    assert rotated["old_secret_until"]
    tell(boss, fresh())
    (message,) = receiver.await_messages(path, 1)
    assert len(message.headers["webhook-signature"].split()) == 2
    message.verify(made["secret"])
    message.verify(rotated["secret"])
    last = ok(boss.post(f"{where}/rotate", {"grace_seconds": 0}))
    tell(boss, fresh())
    message = receiver.await_messages(path, 2)[1]
    message.verify(last["secret"])
    for old in (made, rotated):
        with pytest.raises(WebhookVerificationError):
            message.verify(old["secret"])


def test_410_disables_until_somebody_resumes(boss, hook, receiver, path):
    made = hook(receiver.url(path, 410, 204), events=["lease.*"])
    where = f"/v1/webhooks/{made['webhook_id']}"
    tell(boss, fresh())
    wait_until(lambda: ok(boss.get(where))["state"] == "disabled", 20)
    assert ok(boss.get(where))["reason"] == "the receiver answered 410"
    tell(boss, fresh())
    assert len(receiver.on(path)) == 1
    ok(patch(boss, where, {"state": "active"}))
    assert len({message.id for message in receiver.await_messages(path, 3)[1:]}) == 2


def test_a_receiver_that_asks_for_time_gets_it(boss, hook, receiver, path):
    def busy(request):
        request.send_response(429)
        request.send_header("Retry-After", "1")
        request.send_header("Content-Length", "0")
        request.end_headers()

    hook(receiver.url(path, busy, 204), events=["lease.*"])
    tell(boss, fresh())
    first, second = receiver.await_messages(path, 2)
    assert second.at - first.at >= 1


def test_a_test_arrives_and_stands_among_the_deliveries(boss, hook, receiver, path):
    made = hook(receiver.url(path), events=["task.never"])
    sent = ok(boss.post(f"/v1/webhooks/{made['webhook_id']}/test"))["delivery"]
    (message,) = receiver.await_messages(path, 1)
    message.verify(made["secret"])
    assert message.json["type"] == "webhook.test"
    assert message.json["data"] == {"webhook_id": made["webhook_id"]}
    assert (message.id, sent["state"]) == (sent["message_id"], "pending")
    wait_until(lambda: states(boss, made) == {"delivered": 1})


def test_nothing_is_sent_to_a_webhook_that_is_gone(boss, hook, receiver, path):
    made = hook(receiver.url(path, 500), events=["lease.*"])
    tell(boss, fresh())
    receiver.await_messages(path, 1)
    ok(boss.delete(f"/v1/webhooks/{made['webhook_id']}"))
    seen = len(receiver.on(path))
    hook(receiver.url(f"{path}/other"), events=["lease.*"])
    for _ in range(3):
        tell(boss, fresh())
    receiver.await_messages(f"{path}/other", 3)
    assert len(receiver.on(path)) <= seen + 1
