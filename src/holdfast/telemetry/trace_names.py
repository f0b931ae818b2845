"""Names of spans and their attributes. OpenTelemetry's conventions change, so they are written only here."""

from __future__ import annotations

METHOD, ROUTE, STATUS = "http.request.method", "http.route", "http.response.status_code"
SCHEME, ERROR = "url.scheme", "error.type"
REQUEST_ID, ACCOUNT, OPERATION = "holdfast.request_id", "holdfast.account", "holdfast.operation"

SYSTEM, SYSTEM_NAME = "messaging.system", "holdfast"
OPERATION_TYPE, OPERATION_NAME = "messaging.operation.type", "messaging.operation.name"
DESTINATION, MESSAGE_ID, MESSAGES = (
    "messaging.destination.name",
    "messaging.message.id",
    "messaging.batch.message_count",
)
SEND, RECEIVE, PROCESS, SETTLE = "send", "receive", "process", "settle"

BATCH, COMMANDS = "holdfast.batch", "holdfast.batch.commands"
