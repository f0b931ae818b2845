"""A question outlives its worker and its server: a person answers in a browser, and another worker continues."""

import subprocess
import sys

from playwright.sync_api import expect

import holdfast
from tests.http.job_client import ROOT_KEY

ASKING_WORKER = """
import sys, time, holdfast
worker = holdfast.Worker(holdfast.Client(sys.argv[1], sys.argv[2]), name="doomed")

@worker.task("order")
def order(context):
    try:
        context.ask("Which supplier?", choices=["Huber", "Miller"], checkpoint={"offers": 2})
    finally:
        print("asked", flush=True)
        time.sleep(600)

worker.run()
"""


def test_an_answer_in_a_browser_reaches_another_worker_although_worker_and_server_were_killed(server, browse):
    url = f"http://127.0.0.1:{server.port}"
    client = holdfast.Client(url, ROOT_KEY)
    task = client.create_task("order", {"part": 17})["id"]
    doomed = subprocess.Popen([sys.executable, "-c", ASKING_WORKER, url, ROOT_KEY], stdout=subprocess.PIPE, text=True)
    assert doomed.stdout.readline() == "asked\n"
    doomed.kill()
    doomed.communicate()
    server.kill()
    server.start()
    page = browse(path="/ui/questions")
    expect(page.locator("#question-count")).to_have_text("1")
    page.get_by_role("link", name="Which supplier?").click()
    page.get_by_role("button", name="Miller").click()
    expect(page.get_by_role("status").filter(has_text="Answered.")).to_be_visible()
    expect(page.locator("#question-count")).to_have_text("")
    worker, seen = holdfast.Worker(client, name="successor"), []

    @worker.task("order")
    def order(context):
        seen.append(context.previous["checkpoint"])
        return {"supplier": context.ask("Which supplier?")}

    worker.run_until_idle()
    done = client.check_task_status(task)
    assert (done["status"], done["result"], done["attemptCount"]) == ("completed", {"supplier": "Miller"}, 1)
    assert seen == [{"offers": 2}]
    assert done["answered"]["answeredBy"] == "root"
    client.close()
