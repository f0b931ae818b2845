"""The in-memory store, for tests and simulation: it behaves like the other stores, but is not durable."""

from holdfast.store.memory.store import MemoryStore as MemoryStore
