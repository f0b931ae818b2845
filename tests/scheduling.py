"""Which tests run together, in which order, on which store."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.proof_size import FULL

BROWSER_FOLDER = "tests/dashboard"
SPREAD = (
    "tests/client/test_faults.py",
    "tests/engine/test_differential.py",
    "tests/engine/test_superseded.py",
    "tests/linearizability/",
    "tests/simulation/",
    "tests/store/test_task_queries_match_rules.py",
    "tests/streams/test_feed.py",
    "tests/upgrade/test_killed_migration.py",
)
"""Files whose tests are long at full size and share no expensive set-up: `make prove` spreads them over the workers."""


_STORE = re.compile(r"\b(memory|sqlite|postgres)\b")
ONE_STORE = (
    "tests/backup/",
    "tests/billing/",
    "tests/compat/",
    "tests/dashboard/",
    "tests/engine/",
    "tests/faults/",
    "tests/http/served/",
    "tests/linearizability/",
    "tests/store/test_queries_match_rules.py",
    "tests/store/test_reservation_queries_match_rules.py",
    "tests/store/test_task_queries_match_rules.py",
    "tests/streams/",
    "tests/telemetry/",
    "tests/upgrade/test_old_stores.py",
    "tests/webhooks/",
)
"""Folders whose tests `make test` runs on one store each, in turn, and `make prove` on every store.

That all stores behave alike is proved by tests/store and by the differential tests.
"""
NOT_ON_POSTGRES = ("tests/billing/", "tests/compat/", "tests/dashboard/", "tests/http/served/")
"""Folders of these whose tests are about requests and pages: `make test` runs them on memory or SQLite."""
SAMPLED = {
    "tests/billing/test_paypal.py": 2,
    "tests/cli/test_octostore.py": 3,
    "tests/cli/test_run.py": 3,
    "tests/cli/test_shown_commands.py": 2,
    "tests/compat/octostore/test_bodies.py": 2,
    "tests/dashboard/test_pages.py": 4,
    "tests/dashboard/test_reference.py": 4,
    "tests/dashboard/test_task_list.py": 2,
    "tests/faults/test_bad_input.py": 2,
    "tests/faults/test_configuration.py": 4,
    "tests/http/in_process/test_documents.py": 4,
    "tests/http/served/test_serving.py": 2,
    "tests/http/served/test_tenancy.py": 4,
    "tests/linearizability/test_altered_histories.py": 4,
    "tests/linearizability/test_planted_bugs.py": 8,
    "tests/openapi/test_document.py": 4,
    "tests/openapi/test_examples.py": 4,
    "tests/openapi/test_sqlite.py": 8,
    "tests/simulation/test_planted_bugs.py": 24,
    "tests/test_documents.py::test_every_program_of_these_pages_prints_the_shown_output": 3,
    "tests/test_examples.py": 2,
    "tests/test_install.py": 3,
}
"""Files and tests with many cases of one kind, each of which starts a process or computes for long: `make test` runs
one case of so many, `make prove` all."""
WITH_TABLES = (
    "tests/cli/",
    "tests/client/",
    "tests/compat/",
    "tests/dashboard/",
    "tests/fronts/",
    "tests/http/",
    "tests/mcp/",
)
"""Folders in which `make test` runs every third case of a test with more than three, and `make prove` all."""
FEW_CASES = 3
PROVE_ONLY = (
    "tests/backup/test_disaster_recovery.py::test_no_token_or_event_number_is_reused_and_every_gap_is_reported[postgres",
    "tests/backup/test_disaster_recovery.py::test_no_token_or_event_number_is_reused_and_every_gap_is_reported[sqlite-postgres]",
    "tests/backup/test_killed.py::test_a_source_that_has_changed_is_copied_from_the_beginning",
    "tests/bench/test_load.py",
    "tests/bench/test_measurements.py",
    "tests/cli/test_run.py::test_a_command_that_offers_the_job_leaves_it_to_who_accepts",
    "tests/cli/test_run.py::test_a_job_that_is_done_is_not_run_again",
    "tests/cli/test_run.py::test_run_waits_until_the_job_is_free",
    "tests/client/test_forks.py::test_a_store_opened_again_in_a_child_draws_other_ids_than_its_parent",
    "tests/client/test_shared_file.py::test_programs_and_a_server_on_one_file_have_one_winner_each_round",
    "tests/dashboard/test_bulk.py::test_thousands_of_dead_letters_are_requeued",
    "tests/dashboard/test_files_page.py::test_an_administrator_takes_files_from_their_owner_and_the_log_records_it",
    "tests/dashboard/test_files_page.py::test_the_page_is_labelled_and_works_without_scripts",
    "tests/dashboard/test_hostile.py::test_everything_that_agents_write_can_be_read",
    "tests/dashboard/test_hostile.py::test_only_plain_web_addresses_become_links",
    "tests/dashboard/test_hostile_tasks.py::test_a_group_with_a_hostile_reason_can_be_opened_and_requeued",
    "tests/dashboard/test_keys_page.py::test_a_key_is_created_shown_once_used_rotated_and_revoked",
    "tests/dashboard/test_live_updates.py::test_a_holder_that_stops_renewing_becomes_late_and_expiring_in_the_browser",
    "tests/dashboard/test_live_updates.py::test_an_open_page_of_a_signed_out_browser_asks_for_a_key",
    "tests/dashboard/test_live_updates.py::test_countdowns_run_in_the_browser_between_changes",
    "tests/dashboard/test_live_updates.py::test_five_agents_race_and_another_takes_over_when_the_winner_stops",
    "tests/dashboard/test_pages.py::test_everything_works_by_keyboard_alone",
    "tests/dashboard/test_reference.py::test_the_pages_fit_a_phone_and_follow_the_theme",
    "tests/dashboard/test_signing_in.py::test_a_link_opens_the_dashboard_once",
    "tests/dashboard/test_signing_in.py::test_the_requested_page_is_shown_after_signing_in",
    "tests/dashboard/test_tasks_page.py::test_a_task_list_updates_and_works_by_keyboard",
    "tests/dashboard/test_tasks_page.py::test_long_json_is_cut_and_can_be_expanded",
    "tests/dashboard/test_webhooks_page.py::test_dead_deliveries_are_shown_and_replayed",
    "tests/faults/test_task_crews.py",
    "tests/http/in_process/test_page_bytes.py::test_a_list_of_large_reservations_is_bounded_in_bytes_and_complete",
    "tests/mcp/test_every_tool.py::test_every_tool_over_stdio_with_a_local_store",
    "tests/mcp/test_real_clients.py::test_fastmcp_connects_lists_claims_and_completes",
    "tests/mcp/test_stdio.py::test_a_host_that_is_killed_and_started_again_goes_on_by_the_ids_alone",
    "tests/mcp/test_stdio.py::test_stdout_has_only_protocol_messages",
    "tests/mcp/test_stdio.py::test_the_new_protocol_needs_no_handshake_on_stdio",
    "tests/openapi/test_document.py::test_every_process_generates_the_same_bytes",
    "tests/openapi/test_document.py::test_the_yaml_document_equals_the_json_document",
    "tests/openapi/test_postgres.py",
    "tests/streams/test_scale.py::test_many_readers_receive_every_event_once_while_claims_run[of one subject each]",
    "tests/store/test_migrations.py::test_four_processes_can_open_a_new_store_at_once",
    "tests/store/test_sqlite_file.py::test_two_processes_on_one_file_write_alternately",
    "tests/test_examples.py::test_an_example_prints_the_expected_output[ten_agents_one_repository]",
    "tests/test_install.py::test_a_server_on_sqlite_works_in_a_light_install",
)
"""Tests that start many processes or compute for long; what they prove of a promise, smaller tests prove too."""
HEAVY = (
    "tests/openapi/test_sqlite.py",
    "tests/http/served/test_tenancy.py",
    "tests/mcp/test_every_tool.py",
    "tests/mcp/test_stdio.py",
    "tests/store/test_task_queries_match_rules.py",
)
"""Files that compute for long: they start early, so that no worker is left with one of them at the end."""

SHARED_SERVERS = (
    "tests/billing/",
    "tests/cli/",
    "tests/client/",
    "tests/compat/octostore/",
    "tests/compat/orchestrion/",
    "tests/http/served/",
    "tests/openapi/",
    "tests/telemetry/",
)
"""Folders with servers for all of their tests: a worker stays in one of them until it has no tests left."""
ALONE = (
    "tests/advice/test_walk.py",
    "tests/engine/test_erasing.py::test_deleting_a_large_account_delays_others_by_less_than_a_second",
    "tests/faults/test_claim_latency.py",
    "tests/faults/test_flood.py",
    "tests/faults/test_grace.py",
    "tests/faults/test_task_grace.py",
    "tests/faults/test_task_latency.py",
    "tests/linearizability/test_programs.py::test_every_answer_fits_one_order_while_the_database_s_clock_is_set",
    "tests/streams/test_scale.py",
)
"""Tests that load the whole machine at full size, or measure a time: nothing else runs beside them."""


def is_alone(item: pytest.Item) -> bool:
    """Whether a test runs when all others have ended."""
    return FULL and item.nodeid.startswith(ALONE)


def group_of(item: pytest.Item) -> str:
    """Tests that one worker runs: a file, or a single test where a file is long.

    One worker gets the whole dashboard, because starting a browser is expensive.
    """
    if FULL and item.nodeid.startswith(SPREAD):
        return item.nodeid
    path = item.nodeid.partition("::")[0]
    return BROWSER_FOLDER if path.startswith(f"{BROWSER_FOLDER}/") else path


def folder_of(item: pytest.Item) -> str:
    """What groups of tests share servers: a folder, or the group alone.

    A test that is spread is alone, and so is a file that mostly waits: several of them wait at the same time.
    """
    group = group_of(item)
    if group == item.nodeid or is_waiting(item):
        return group
    return next((folder for folder in SHARED_SERVERS if group.startswith(folder)), group)


def is_waiting(item: pytest.Item) -> bool:
    """Whether a test is in a file that mostly waits."""
    return _waiting_seconds(item) > 0


def sort_by_waiting(items: list[pytest.Item]) -> None:
    """Put the browser first, then what waits or computes longest."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)

    def rank(path: Path) -> tuple[bool, int, bool]:
        tests = files[path]
        in_browser = tests[0].nodeid.startswith(f"{BROWSER_FOLDER}/")
        return not in_browser, -max(map(_waiting_seconds, tests)), not _is_heavy(tests)

    items[:] = [item for path in sorted(files, key=rank) for item in files[path]]


def choose_stores(items: list[pytest.Item]) -> list[pytest.Item]:
    """Leave, of tests that differ only in their store, one in turn, in the folders of one store each; return the rest.

    A test of two stores, such as one that copies from the first to the second, stays as it is.
    """
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.nodeid.startswith(ONE_STORE):
            text, stores = _STORE.subn("", item.nodeid)
            if stores == 1:
                groups.setdefault(text, []).append(item)
    removed = []
    for turn, tests in enumerate(tests for tests in groups.values() if len(tests) > 1):
        allowed = [item for item in tests if not _is_left_out(item)] or tests
        removed += [item for item in tests if item is not allowed[turn % len(allowed)]]
    gone = set(removed)
    items[:] = [item for item in items if item not in gone]
    return removed


def _is_left_out(item: pytest.Item) -> bool:
    """Whether it is one of those on PostgreSQL that are left out if there are others."""
    return item.nodeid.startswith(NOT_ON_POSTGRES) and "postgres" in _STORE.findall(item.nodeid)


def leave_for_proof(items: list[pytest.Item]) -> list[pytest.Item]:
    """Remove and return the tests that only `make prove` runs."""
    removed = [item for item in items if item.nodeid.startswith(PROVE_ONLY)]
    items[:] = [item for item in items if not item.nodeid.startswith(PROVE_ONLY)]
    return removed


def sample_cases(items: list[pytest.Item]) -> list[pytest.Item]:
    """Remove and return all but some cases of the tests that are sampled.

    Each test of a file begins with another case, so that most cases run in one of its tests.
    """
    cases = Counter(map(_test_of, items))
    seen: dict[str, dict[str, int]] = {}
    removed = []
    for item in items:
        test = _test_of(item)
        every = _sampling(test, cases[test])
        if every > 1 and "[" in item.name:
            tests = seen.setdefault(test.partition("::")[0], {})
            tests.setdefault(test, len(tests))
            if tests[test] % every:
                removed.append(item)
            tests[test] += 1
    gone = set(removed)
    items[:] = [item for item in items if item not in gone]
    return removed


def _test_of(item: pytest.Item) -> str:
    """The test without its case."""
    return item.nodeid.partition("[")[0]


def _sampling(test: str, cases: int) -> int:
    """Of how many cases of a test one is run; of every test at least one is."""
    listed = SAMPLED.get(test) or SAMPLED.get(test.partition("::")[0])
    return min(listed or (3 if cases > FEW_CASES and test.startswith(WITH_TABLES) else 1), cases)


def _is_heavy(tests: list[pytest.Item]) -> bool:
    return tests[0].nodeid.startswith(HEAVY)


def _waiting_seconds(item: pytest.Item) -> int:
    marker = item.get_closest_marker("waits")
    return marker.args[0] if marker else 0
