"""Deliveries on every store: signatures, order, retries, dead letters and replays."""

import base64
from collections import Counter

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.http.job_client import claimed, fresh, ok
from tests.http.metrics_parser import scrape
from tests.support import wait_until

pytestmark = pytest.mark.waits(10)


def deliveries(admin, webhook, query=""):
    return ok(admin.get(f"/v1/webhooks/{webhook['webhook_id']}/deliveries{query}"))["deliveries"]


def states(admin, webhook):
    return ok(admin.get(f"/v1/webhooks/{webhook['webhook_id']}"))["deliveries"]


def patch(admin, path, body):
    return admin.send_json("PATCH", path, body)


def write_events(admin, subject, times=1):
    """Write `times` events about one job: claimed, then renewed."""
    lease = claimed(admin.claim(subject))["lease_id"]
    for _ in range(times - 1):
        ok(admin.heartbeat(subject, lease))
    return lease


def test_an_event_arrives_signed_and_complete(admin, hook, receiver, path):
    job = fresh()
    webhook = hook(receiver.url(path), events=["lease.*"], subject=f"lease:{job}")
    assert webhook["secret"].startswith("whsec_")
    assert len(base64.b64decode(webhook["secret"].removeprefix("whsec_"))) == 32
    write_events(admin, job)
    (message,) = receiver.await_messages(path, 1)
    message.verify(webhook["secret"])
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
        Webhook(webhook["secret"]).verify(message.raw.replace(b"claimed", b"renewed"), message.headers)
    wait_until(lambda: states(admin, webhook) == {"delivered": 1})
    (delivery,) = deliveries(admin, webhook)
    assert (delivery["state"], delivery["attempts"], delivery["status"], delivery["message_id"]) == (
        "delivered",
        1,
        204,
        message.id,
    )


def test_only_matching_events_after_the_creation_are_sent(admin, hook, receiver, path):
    mine, other = fresh("deploy"), fresh()
    write_events(admin, mine)
    hook(receiver.url(path), events=["lease.renewed", "task.*"], subject="lease:deploy*")
    first, second = fresh("deploy"), fresh("deploy")
    write_events(admin, other, 2)
    write_events(admin, first, 3)
    write_events(admin, second, 2)
    messages = receiver.await_messages(path, 3)
    assert [message.json["type"] for message in messages] == ["lease.renewed"] * 3
    assert sorted(message.subject for message in messages) == sorted([f"lease:{first}"] * 2 + [f"lease:{second}"])


def test_a_failed_delivery_is_retried_with_its_id_before_later_events_of_its_subject(admin, hook, receiver, path):
    first, second = fresh(), fresh()
    webhook = hook(receiver.url(path, 500, 302, 204), events=["lease.*"])
    write_events(admin, first, 3)
    messages = receiver.await_messages(path, 5)
    assert [message.seq for message in messages] == [messages[0].seq] * 3 + [messages[0].seq + 1, messages[0].seq + 2]
    assert len({message.id for message in messages}) == 3
    for message in messages:
        message.verify(webhook["secret"])
    assert messages[1].at - messages[0].at >= 0.2
    assert messages[2].at - messages[1].at >= 0.3
    write_events(admin, second)
    receiver.await_messages(path, 6)
    wait_until(lambda: states(admin, webhook) == {"delivered": 4})


def test_a_delivery_that_keeps_failing_is_a_dead_letter_and_can_be_replayed(admin, hook, receiver, path):
    job = fresh()
    webhook = hook(receiver.url(path, 500, 503, 404, 204), events=["lease.*"], subject=f"lease:{job}")
    write_events(admin, job, 2)
    wait_until(lambda: states(admin, webhook) == {"dead": 1, "delivered": 1}, 20)
    (dead,) = deliveries(admin, webhook, "?state=dead")
    assert (dead["attempts"], dead["status"], dead["error"]) == (3, 404, "status 404")
    messages = receiver.on(path)
    assert [message.seq for message in messages] == [dead["seq"]] * 3 + [dead["seq"] + 1]
    assert ok(admin.post(f"/v1/webhooks/{webhook['webhook_id']}/replay", {}))["replayed"] == 1
    again = receiver.await_messages(path, 5)[4]
    assert again.id == dead["message_id"]
    again.verify(webhook["secret"])
    wait_until(lambda: states(admin, webhook) == {"delivered": 2})
    everything = ok(admin.post(f"/v1/webhooks/{webhook['webhook_id']}/replay", {"after": 0}))
    assert everything["replayed"] == 2
    receiver.await_messages(path, 7)
    one = ok(admin.post(f"/v1/webhooks/{webhook['webhook_id']}/replay", {"seq": dead["seq"]}))
    assert one["replayed"] == 1
    receiver.await_messages(path, 8)


def test_attempts_are_counted_by_result(server, admin, hook, receiver, path):
    def attempts():
        page = scrape(server.admin.get("/metrics/prometheus").raw, openmetrics=False)
        return Counter({labels["outcome"]: many for labels, many in page.samples("holdfast_webhook_deliveries_total")})

    before, job = attempts(), fresh()
    webhook = hook(receiver.url(path, 500, 503, 404, 204), events=["lease.*"], subject=f"lease:{job}")
    write_events(admin, job, 2)
    wait_until(lambda: states(admin, webhook) == {"dead": 1, "delivered": 1}, 20)
    assert attempts() - before == {"failed": 2, "dead": 1, "delivered": 1}


def test_a_failing_receiver_delays_no_other(admin, hook, receiver, path):
    bad, good = f"{path}/bad", f"{path}/good"
    hook(receiver.url(bad, 500), events=["lease.*"])
    hook(receiver.url(good), events=["lease.*"])
    for _ in range(3):
        write_events(admin, fresh(), 2)
    assert len({message.id for message in receiver.await_messages(good, 6)}) == 6
    assert len({message.subject for message in receiver.await_messages(bad, 3)}) == 3


def test_events_during_a_pause_are_sent_after_it(admin, hook, receiver, path):
    webhook = hook(receiver.url(path), events=["lease.*"])
    where = f"/v1/webhooks/{webhook['webhook_id']}"
    paused = ok(patch(admin, where, {"state": "paused"}))
    assert (paused["state"], paused["reason"]) == ("paused", "by request")
    first, second = fresh(), fresh()
    write_events(admin, first, 2)
    hook(receiver.url(f"{path}/other"), events=["lease.*"])
    write_events(admin, second)
    receiver.await_messages(f"{path}/other", 1)
    assert receiver.on(path) == []
    resumed = ok(patch(admin, where, {"state": "active"}))
    assert (resumed["state"], resumed["reason"]) == ("active", None)
    messages = [message.subject for message in receiver.await_messages(path, 3)]
    assert sorted(messages) == sorted([f"lease:{first}"] * 2 + [f"lease:{second}"])


def test_messages_are_signed_with_both_secrets_after_a_rotation(admin, hook, receiver, path):
    webhook = hook(receiver.url(path), events=["lease.*"])
    where = f"/v1/webhooks/{webhook['webhook_id']}"
    rotated = ok(admin.post(f"{where}/rotate", {"grace_seconds": 3600}))
    assert rotated["secret"] != webhook["secret"]
    assert rotated["old_secret_until"]
    write_events(admin, fresh())
    (message,) = receiver.await_messages(path, 1)
    assert len(message.headers["webhook-signature"].split()) == 2
    message.verify(webhook["secret"])
    message.verify(rotated["secret"])
    last = ok(admin.post(f"{where}/rotate", {"grace_seconds": 0}))
    write_events(admin, fresh())
    message = receiver.await_messages(path, 2)[1]
    message.verify(last["secret"])
    for old in (webhook, rotated):
        with pytest.raises(WebhookVerificationError):
            message.verify(old["secret"])


def test_a_410_disables_the_webhook_until_it_is_resumed(admin, hook, receiver, path):
    webhook = hook(receiver.url(path, 410, 204), events=["lease.*"])
    where = f"/v1/webhooks/{webhook['webhook_id']}"
    write_events(admin, fresh())
    wait_until(lambda: ok(admin.get(where))["state"] == "disabled", 20)
    assert ok(admin.get(where))["reason"] == "the receiver answered 410"
    write_events(admin, fresh())
    assert len(receiver.on(path)) == 1
    ok(patch(admin, where, {"state": "active"}))
    assert len({message.id for message in receiver.await_messages(path, 3)[1:]}) == 2


def test_retry_after_delays_the_next_attempt(admin, hook, receiver, path):
    def busy(request):
        request.send_response(429)
        request.send_header("Retry-After", "1")
        request.send_header("Content-Length", "0")
        request.end_headers()

    hook(receiver.url(path, busy, 204), events=["lease.*"])
    write_events(admin, fresh())
    first, second = receiver.await_messages(path, 2)
    assert second.at - first.at >= 1


def test_a_test_message_arrives_and_is_listed(admin, hook, receiver, path):
    webhook = hook(receiver.url(path), events=["task.never"])
    sent = ok(admin.post(f"/v1/webhooks/{webhook['webhook_id']}/test"))["delivery"]
    (message,) = receiver.await_messages(path, 1)
    message.verify(webhook["secret"])
    assert message.json["type"] == "webhook.test"
    assert message.json["data"] == {"webhook_id": webhook["webhook_id"]}
    assert (message.id, sent["state"]) == (sent["message_id"], "pending")
    wait_until(lambda: states(admin, webhook) == {"delivered": 1})


def test_nothing_is_sent_to_a_deleted_webhook(admin, hook, receiver, path):
    webhook = hook(receiver.url(path, 500), events=["lease.*"])
    write_events(admin, fresh())
    receiver.await_messages(path, 1)
    ok(admin.delete(f"/v1/webhooks/{webhook['webhook_id']}"))
    count = len(receiver.on(path))
    hook(receiver.url(f"{path}/other"), events=["lease.*"])
    for _ in range(3):
        write_events(admin, fresh())
    receiver.await_messages(f"{path}/other", 3)
    assert len(receiver.on(path)) <= count + 1
