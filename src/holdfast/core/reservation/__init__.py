"""Reservations: paths of a repository that one owner holds, or several share."""
