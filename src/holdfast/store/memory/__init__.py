"""The in-memory store, for tests and simulation: the same behaviour as the others without durability."""

from holdfast.store.memory.store import MemoryStore as MemoryStore
