"""Every operation and every bound, each defined once."""
