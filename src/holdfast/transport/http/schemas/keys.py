"""Schemas of `/v1/keys` and of OctoStore's `/auth`."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.core.principal import SCOPES
from holdfast.operations.bounds import FIELDS
from holdfast.transport.http.api import keys
from holdfast.transport.http.octostore import users
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import OperationSchema, Time, request_body

_SCOPE = Annotated[str, Meta(extra_json_schema={"enum": list(SCOPES)})]
_SCOPES = Annotated[list[_SCOPE], Meta(min_length=1)]


class Key(Struct, rename="camel", kw_only=True):
    """A key, without its secret."""

    key_id: str
    name: str
    source: str
    shown: str | None
    scopes: list[str]
    prefix: str | None
    created_at: Time
    expires_at: Time | None
    old_key_until: Time | None
    revoked_at: Time | None
    last_used_at: Time | None


_SPELLED = dict(zip(Key.__struct_fields__, Key.__struct_encode_fields__, strict=True))


class KeyAnswer(Key, rename=_SPELLED, kw_only=True):
    """One key."""

    agent_contract: AgentContract


class NewKey(Key, rename=_SPELLED | {"api_key": "apiKey"}, kw_only=True):
    """A key with its secret, which is shown only once."""

    api_key: str
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class Keys(Struct):
    """All of an account's keys."""

    keys: list[Key]
    agent_contract: AgentContract


class LockUser(Struct):
    """A user of locks and its token, which is shown only once."""

    token: str
    user_id: str
    username: str
    namespace: str | None


class NewToken(Struct):
    """A user's new token, which is shown only once."""

    token: str
    user_id: str
    github_username: str
    namespace: str | None


_ROTATE = request_body("RotateKeyBody", keys.RotateBody, FIELDS["rotate_key"])
_LOST = (errors.Missing, errors.ConfiguredKey)

OPERATION_SCHEMAS = {
    "list_keys": OperationSchema({200: Keys}),
    "read_key": OperationSchema({200: KeyAnswer}, refusals=(errors.Missing,)),
    "create_key": OperationSchema(
        {201: NewKey},
        body=request_body(
            "CreateKeyBody",
            keys.KeyBody,
            FIELDS["create_key"],
            scopes=_SCOPES,
        ),
    ),
    "rotate_key": OperationSchema({200: NewKey}, body=_ROTATE, refusals=_LOST),
    "rotate_own_key": OperationSchema({200: NewKey}, body=_ROTATE, refusals=_LOST),
    "revoke_key": OperationSchema({200: KeyAnswer}, refusals=(*_LOST, errors.LastAdmin)),
    "register_user": OperationSchema(
        {200: LockUser},
        body=request_body("RegisterUserBody", users.UserBody, {}),
        refusals=(errors.NameTaken, errors.Missing),
    ),
    "rotate_token": OperationSchema({200: NewToken}, refusals=_LOST),
}
