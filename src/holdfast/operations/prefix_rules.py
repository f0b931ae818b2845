"""The prefix rule of every operation: what it allows to a key that may use only names with a certain prefix.

An operation that is missing here stops the program when `operations/table.py` is imported.
"""

from __future__ import annotations

from holdfast.core.prefix_rule import COVERED, NAMED, OWN, PUBLIC, WHOLE

_NAMED = """
    claim_job heartbeat_job release_job offer_job withdraw_job_offer force_release_job get_job_owner
    get_lock_status acquire_lock renew_lock release_lock set_lock_acl watch_lock
"""
_COVERED = """
    reserve_files heartbeat_reservation release_files extend_reservation force_release_reservation
    offer_reservation withdraw_reservation_offer claim_reservation
    read_reservation list_reservations check_files
    claim_any_job heartbeat_leases list_claimed_jobs list_locks list_events
    list_keys create_key read_key rotate_key revoke_key
"""
_OWN = """
    mcp read_account billing_status link_dashboard rotate_own_key rotate_token
    list_mine begin_session list_sessions read_session heartbeat_session write_context close_session
    open_session get_session end_session keepalive_session
    create_lock_webhook list_lock_webhooks delete_lock_webhook
"""
_WHOLE = """
    create_task list_tasks count_tasks batch_tasks claim_task check_task_status claim_task_by_id heartbeat
    complete_task fail_task release_task snooze_task offer_task withdraw_task_offer cancel_task requeue_task
    resolve_task task_events task_attempts task_dependencies list_queues read_queue set_queue
    ask_task list_questions read_question answer_question
    checkout verify_payment export_account delete_account settle_account recover
    create_webhook list_webhooks read_webhook update_webhook delete_webhook rotate_webhook_secret test_webhook
    list_deliveries replay_deliveries
    admin_status metrics prometheus metrics_history
"""
_PUBLIC = """
    register list_plans register_user
    create_election get_election_status watch_election campaign renew_leadership resign
    index health status healthz readyz version docs
    agent_json agent_card capabilities tool schema openapi_json openapi_yaml llms_txt agents_md skill_md
"""

PREFIX_RULES = {
    name: rule
    for rule, names in ((NAMED, _NAMED), (COVERED, _COVERED), (OWN, _OWN), (WHOLE, _WHOLE), (PUBLIC, _PUBLIC))
    for name in names.split()
}
