"""Settings of a server: `fields` describes them, `loading` reads and checks them, `model` is the result."""

from holdfast.settings.field import PREFIX
from holdfast.settings.fields import DEFAULT_PORT
from holdfast.settings.loading import BadSettings, load
from holdfast.settings.model import Settings, default_store, describe_store, sqlite_path, store_address

__all__ = [
    "DEFAULT_PORT",
    "PREFIX",
    "BadSettings",
    "Settings",
    "default_store",
    "describe_store",
    "load",
    "sqlite_path",
    "store_address",
]
