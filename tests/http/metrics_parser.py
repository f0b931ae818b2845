"""Reads Prometheus' text and OpenMetrics, character by character, and is strict about both."""

from dataclasses import dataclass, field

NAME = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:")


@dataclass
class Page:
    kinds: dict = field(default_factory=dict)
    helps: dict = field(default_factory=dict)
    found: list = field(default_factory=list)

    def samples(self, name):
        return [(labels, value) for seen, labels, value in self.found if seen == name]

    def value(self, name, **labels):
        (value,) = [value for seen, value in self.samples(name) if seen == labels]
        return value


def scrape(raw: bytes, *, openmetrics: bool) -> Page:
    text = raw.decode()
    assert text.endswith("\n"), "the last line has an end too"
    lines = text[:-1].split("\n")
    if openmetrics:
        assert lines.pop() == "# EOF"
    page, family, seen = Page(), None, set()
    for line in lines:
        if line.startswith("# "):
            _, what, name, rest = line.split(" ", 3)
            if what == "HELP":
                assert name not in page.helps, "a family comes once"
                page.helps[name] = unescape(rest, quotes=openmetrics)
            else:
                assert what == "TYPE"
                page.kinds[name] = rest
                family = name
        else:
            name, labels, value = sample(line)
            assert family is not None
            assert name.startswith(family), f"{name} stands in the family {family}"
            key = (name, tuple(sorted(labels.items())))
            assert key not in seen, f"{key} comes twice"
            seen.add(key)
            page.found.append((name, labels, value))
    return page


def sample(line: str):
    end = next((place for place, character in enumerate(line) if character not in NAME), len(line))
    name, rest, labels = line[:end], line[end:], {}
    assert name, line
    if rest.startswith("{"):
        rest = rest[1:]
        while not rest.startswith("}"):
            label, rest = rest.split('="', 1)
            assert set(label) <= NAME, label
            raw = ""
            while rest[0] != '"':
                step = 2 if rest[0] == "\\" else 1
                raw, rest = raw + rest[:step], rest[step:]
            assert label not in labels
            labels[label] = unescape(raw, quotes=True)
            rest = rest[1:].removeprefix(",")
        rest = rest[1:]
    assert rest.startswith(" "), line
    return name, labels, float(rest[1:])


def unescape(text: str, *, quotes: bool) -> str:
    out, place = "", 0
    known = {"\\": "\\", "n": "\n"} | ({'"': '"'} if quotes else {})
    while place < len(text):
        if text[place] == "\\":
            place += 1
            out += known[text[place]]
        else:
            out += text[place]
        place += 1
    return out
