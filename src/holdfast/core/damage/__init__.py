"""Damage: what makes a stored record unusable, in words for an operator.

Holdfast never writes such a record: another program did, or a disk. It is set aside, so that all others are served.
"""

from holdfast.core.damage.contradictions import damage_of
from holdfast.core.damage.values import damage_of_values

__all__ = ["damage_of", "damage_of_values"]
