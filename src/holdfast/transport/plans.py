"""Documents about plans."""

from __future__ import annotations

from typing import Any

from holdfast.core.plan import Plan


def plan_document(plan: Plan) -> dict[str, Any]:
    """A plan with its price and limits; null means no limit."""
    return {
        "planId": plan.id,
        "planName": plan.name,
        "priceUsd": plan.price_cents / 100,
        "durationDays": plan.duration_days,
        **limits_document(plan),
    }


def limits_document(plan: Plan) -> dict[str, int | None]:
    """The limits of a plan; null means no limit."""
    return {
        "maxWorkers": plan.max_workers,
        "maxTasksPerMonth": plan.tasks_per_month,
        "createsPerHour": plan.creates_per_hour,
        "claimsPerHour": plan.claims_per_hour,
        "readsPerHour": plan.reads_per_hour,
        "mutationsPerHour": plan.mutations_per_hour,
        "heartbeatsPerHour": plan.heartbeats_per_hour,
        "retentionDays": plan.retention_days,
    }
