"""Files page: the tree of reserved paths, one reservation with its history, waiting, permissions and force-release."""

import pytest
from playwright.sync_api import expect

from holdfast.transport.dashboard.path_tree import MAX_LEVEL, tree_rows
from tests.dashboard.client import DashboardClient, text_of
from tests.http.job_client import Callers, fresh
from tests.support import wait_until


@pytest.fixture
def client(server):
    return DashboardClient(server.port).sign_in()


def reserve(root, space, owner, *paths, **more):
    return root.post("/v1/reservations", {"space": space, "owner": owner, "paths": list(paths), **more}).json


def shown(page):
    """The text of a page's main part, with single spaces."""
    return " ".join(text_of(page.partition("<main")[2]).split())


def rows(*patterns):
    return [(row.level, row.label, row.item) for row in tree_rows((pattern, pattern) for pattern in patterns)]


# -- the tree ----------------------------------------------------------------------------------------------------


def test_folders_come_before_files_and_a_folder_with_one_thing_shares_its_row():
    assert rows("README.md", "src/a.py", "src/b/c/d.py", "src/b/c/e.py", "docs/guides/") == [
        (0, "docs/guides/", "docs/guides/"),
        (0, "src/", None),
        (1, "b/c/", None),
        (2, "d.py", "src/b/c/d.py"),
        (2, "e.py", "src/b/c/e.py"),
        (1, "a.py", "src/a.py"),
        (0, "README.md", "README.md"),
    ]


def test_a_reserved_folder_is_above_what_is_reserved_in_it():
    assert rows("src/auth/login.py", "src/auth/") == [
        (0, "src/auth/", "src/auth/"),
        (1, "login.py", "src/auth/login.py"),
    ]


def test_what_begins_with_a_wildcard_is_one_row():
    assert rows("src/**/*.py", "*.md", "*/x/", "src/a") == [
        (0, "*/x/", "*/x/"),
        (0, "src/", None),
        (1, "**/*.py", "src/**/*.py"),
        (1, "a", "src/a"),
        (0, "*.md", "*.md"),
    ]


def test_a_file_and_a_folder_of_the_same_name_are_apart_and_twice_reserved_is_twice_shown():
    assert rows("src", "src/", "src/") == [(0, "src/", "src/"), (0, "src/", "src/"), (0, "src", "src")]


def test_very_deep_folders_are_not_indented_further():
    deep = [f"{'/'.join('abcdefghijklmno'[:count])}/" for count in range(1, 15)]
    assert [level for level, _, _ in rows(*deep)] == [min(level, MAX_LEVEL) for level in range(14)]


# -- the page ----------------------------------------------------------------------------------------------------


def test_a_space_is_shown_as_a_tree_with_owner_mode_reason_and_time(client, root):
    space = fresh("acme/shop")
    reserve(root, space, "agent-a", "src/auth/", "README.md", reason="fix the login")
    reserve(root, space, "agent-b", "docs/**", mode="shared")
    text = shown(client.get(f"/ui/files?q={space}")[2])
    assert f"{space} 2 reserved" in text
    for words in ("docs/** agent-b shared 14 min 5", "src/auth/ agent-afix the login exclusive", "README.md agent-a"):
        assert words in text, text


def test_who_waits_is_shown_at_the_path_that_is_in_the_way_and_in_order(client, root):
    space = fresh("acme/queue")
    first = reserve(root, space, "holder", "src/", "README.md")
    with Callers() as callers:
        waits = []
        for name in ("patient", "later"):
            waits.append(callers.send(reserve, root, space, name, "src/**/*.py", wait_seconds=20))
            wait_until(lambda name=name: f"{name}, behind holder" in shown(client.get(f"/ui/files?q={space}")[2]))
        text = shown(client.get(f"/ui/files?q={space}")[2])
        assert "1 reserved, 2 waiting" in text
        assert "patient" not in text.partition("README.md holder")[2].partition("Waiting, first come")[0]
        assert " patient, later " in text.partition("src/ holder")[2]
        assert text.index("patient, behind") < text.index("later, behind")
        detail = shown(client.get(f"/ui/files/{first['reservation_id']}")[2])
        assert "Waiting for it" in detail
        assert detail.index("patient") < detail.index("later")
        held = first
        for wait in waits:
            root.post(f"/v1/reservations/{held['reservation_id']}/release", {"lease_id": held["lease_id"]})
            held, _ = wait.result()
        assert held["owner"] == "later"


def test_the_path_filter_shows_who_has_reserved_one_file(client, root):
    space = fresh("acme/filter")
    reserve(root, space, "agent-a", "src/auth/")
    reserve(root, space, "agent-b", "docs/")
    text = shown(client.get(f"/ui/files?q={space}&path=src/auth/login.py")[2])
    assert "agent-a" in text
    assert "agent-b" not in text
    assert "Nobody has reserved README.md" in shown(client.get(f"/ui/files?q={space}&path=README.md")[2])
    assert "relative to the root" in shown(client.get(f"/ui/files?q={space}&path=/etc")[2])


def test_spaces_are_found_by_prefix(client, root):
    one, other = fresh("one/"), fresh("other/")
    reserve(root, one, "agent", "a")
    reserve(root, other, "agent", "a")
    text = shown(client.get("/ui/files?q=one/")[2])
    assert one in text
    assert other not in text
    assert "No file is reserved in a space whose name begins with none" in shown(client.get("/ui/files?q=none")[2])


def test_an_account_without_reservations_sees_the_command_that_makes_one(root, server):
    stranger = DashboardClient(server.port).sign_in(root.post("/v1/keys/register", {}).json["apiKey"])
    assert "holdfast reserve --space acme/shop src/auth/ README.md -- " in shown(stranger.get("/ui/files")[2])


# -- one reservation ---------------------------------------------------------------------------------------------


def test_a_reservation_is_shown_with_its_events_in_words(client, root):
    space = fresh("acme/history")
    held = reserve(root, space, "agent-a", "src/", "README.md", reason="fix", metadata={"issue": 7})
    path = f"/v1/reservations/{held['reservation_id']}"
    lease = {"lease_id": held["lease_id"]}
    assert root.post(f"{path}/heartbeat", lease).status == 200
    assert root.post(f"{path}/extend", {**lease, "paths": ["docs/"]}).status == 200
    assert root.post(f"{path}/release", {**lease, "paths": ["src/"]}).status == 200
    text = shown(client.get(f"/ui/files/{held['reservation_id']}")[2])
    for words in ("agent-a", space, '"issue": 7', "reserved src/, README.md", "gave back paths README.md",
                  "added paths src/, README.md, docs/"):  # fmt: skip
        assert words in text, words
    assert root.post(f"{path}/release", lease).status == 200
    assert "released" in shown(client.get(f"/ui/files/{held['reservation_id']}")[2])
    assert client.get(f"/ui/files/{fresh()}")[0] == 404


def test_the_other_pages_show_reservations_as_held_work(client, root):
    space, name = fresh("acme/held"), fresh("agent")
    session = root.post("/v1/sessions", {"name": name}).json
    held = reserve(root, space, name, f"{name}/", "README.md", session_id=session["session_id"])
    title = f"{name}/ and 1 more"
    for path in ("/", "/ui/agents", f"/ui/agents/{session['session_id']}", "/ui/events?kind=reservation."):
        page = client.get(path)[2]
        assert title in shown(page), path
        assert f'href="/ui/files/{held["reservation_id"]}"' in page, path


def test_an_administrator_takes_files_from_their_owner_and_the_log_records_it(browse, root):
    held = reserve(root, fresh("acme/stuck"), "sleeper", "src/")
    page = browse(path=f"/ui/files/{held['reservation_id']}")
    page.locator("#force-release summary").click()
    page.get_by_role("button", name="Force-release").click()
    path = f"/v1/reservations/{held['reservation_id']}"
    assert root.get(path).json["status"] == "reserved"  # neither a reason nor sure
    page.get_by_label("Reason").fill("it sleeps")
    page.get_by_label("Confirm").check()
    page.get_by_role("button", name="Force-release").click()
    expect(page.get_by_role("status").filter(has_text="Released by force")).to_be_visible()
    expect(page.locator("#events")).to_contain_text("taken away")
    document = root.post(f"{path}/heartbeat", {"lease_id": held["lease_id"]}).json
    assert (document["error"], document["reason"], document["ended_by"]) == ("lease_lost", "it sleeps", "root")


# -- who sees what -----------------------------------------------------------------------------------------------


def test_a_key_that_only_reads_sees_reservations_and_changes_nothing(root, server):
    held = reserve(root, fresh("acme/seen"), "owner", "src/")
    key = root.post("/v1/keys", {"name": fresh("key"), "scopes": ["read"]}).json["apiKey"]
    reader = DashboardClient(server.port).sign_in(key)
    text = reader.get(f"/ui/files/{held['reservation_id']}")[2]
    assert "owner" in text
    assert "force-release" not in text
    fields = {"act": "force-release", "reason": "no", "sure": "yes", "token": reader.token()}
    assert reader.post(f"/ui/files/{held['reservation_id']}", **fields)[0] == 403
    assert root.get(f"/v1/reservations/{held['reservation_id']}").json["status"] == "reserved"


def test_a_key_with_a_prefix_sees_only_its_spaces(root, server):
    mine, theirs = fresh("mine/"), fresh("theirs/")
    own = reserve(root, mine, "me", "own-file")
    foreign = reserve(root, theirs, "them", "foreign-file")
    made = root.post("/v1/keys", {"name": fresh("key"), "scopes": ["jobs", "read"], "prefix": "mine/"}).json
    bound = DashboardClient(server.port).sign_in(made["apiKey"])
    for path in ("/", "/ui/files", "/ui/files?q=theirs", "/ui/files?q=m", f"/ui/files?after={mine}"):
        assert "foreign-file" not in bound.get(path)[2], path
    for path in ("/", "/ui/files", "/ui/files?q=m", "/ui/files?after=aaa"):
        assert "own-file" in bound.get(path)[2], path
    assert bound.get(f"/ui/files/{own['reservation_id']}")[0] == 200
    assert bound.get(f"/ui/files/{foreign['reservation_id']}")[0] == 404


def test_another_account_sees_no_reservation_of_this_one(root, server):
    held = reserve(root, fresh("acme/ours"), "owner", "secret-file")
    stranger = DashboardClient(server.port).sign_in(root.post("/v1/keys/register", {}).json["apiKey"])
    for path in ("/", "/ui/files", "/ui/files?q=acme"):
        assert "secret-file" not in stranger.get(path)[2]
    assert stranger.get(f"/ui/files/{held['reservation_id']}")[0] == 404


def test_the_page_is_labelled_and_works_without_scripts(browse, root):
    space = fresh("acme/plain")
    reserve(root, space, "owner", "src/plain.py")
    page = browse(path="/ui/files", java_script_enabled=False)
    page.get_by_label("Space").fill(space)
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="src/plain.py").click()
    expect(page.get_by_role("heading", name="src/plain.py")).to_be_visible()
