"""Roll-ups: counts, durations and highest values of an account over an interval, from which charts are drawn."""
