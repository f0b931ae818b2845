"""Overload protection: limits of the work, the bytes and the requests that each caller has in progress."""
