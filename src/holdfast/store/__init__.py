"""Stores rows, events and deliveries, and decides nothing. One interface with three equivalent implementations."""
