"""The commands of the engine, by noun: what each must load, and what it decides."""
