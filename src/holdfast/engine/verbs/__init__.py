"""The commands of the engine, by noun: the rows each needs and what it decides."""
