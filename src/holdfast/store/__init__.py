"""Remembers, never decides. One small contract, three stores that keep it alike."""
