"""The metrics, labels and label values that an expression of Prometheus uses, as far as our own files need it."""

import re

SELECTOR = re.compile(r"\b(holdfast_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
TARGET_LABELS = {"job", "instance"}
"""Prometheus adds them to every series."""
LABELS_OF_GROUPS = re.compile(r"\b(?:by|without|on)\s*\(([^)]*)\)")


def selectors(expression):
    """(metric, matchers) of each selector; matchers are (label, values)."""
    for name, matchers in SELECTOR.findall(expression):
        yield name, [(label, values.split("|")) for label, _, values in MATCHER.findall(matchers)]


def grouping_labels(expression):
    """The labels by which an expression groups."""
    return {label.strip() for labels in LABELS_OF_GROUPS.findall(expression) for label in labels.split(",")}


def problems(expression, known):
    """What is wrong with an expression. `known` has the label values of each series by its name."""
    found = []
    labels = set(TARGET_LABELS)
    for name, matchers in selectors(expression):
        if name not in known:
            found.append(f"{name} does not exist")
            continue
        labels |= set(known[name])
        for label, values in matchers:
            if label in TARGET_LABELS:
                continue
            allowed = known[name].get(label)
            if allowed is None:
                found.append(f"{name} has no label {label}")
            elif allowed and (wrong := set(values) - set(allowed)):
                found.append(f"{label} of {name} is never {', '.join(sorted(wrong))}")
    if wrong := grouping_labels(expression) - labels:
        found.append(f"no series of the expression has the label {', '.join(sorted(wrong))}")
    return found
