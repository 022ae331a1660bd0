"""The metrics of the product, as the code describes them: name, type, help, labels.

Reads the calls of metrics::Counter, Gauge, Histogram, HeldCounter and HeldGauge in the sources. A metric that cannot
be read stops the reader, so that none is missed.
"""
import dataclasses
import pathlib
import re

CALL = re.compile(r"\b(?:metrics::)?(Counter|Gauge|Histogram|HeldCounter|HeldGauge)\s*\(")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
NAME = re.compile(r"^[a-z][a-z0-9_]*$")
FOLDERS = ("common", "gateway", "services")


@dataclasses.dataclass(frozen=True)
class Metric:
    name: str
    type: str  # counter, gauge or histogram
    help: str
    labels: tuple
    source: str


def arguments(text, start):
    """The arguments of a call whose opening parenthesis is before `start`."""
    found, depth, begin, at = [], 0, start, start
    while at < len(text):
        character = text[at]
        if character == '"':
            at = LITERAL.match(text, at).end()
            continue
        if character in "([{":
            depth += 1
        elif character in ")]}":
            if depth == 0:
                found.append(text[begin:at].strip())
                return found
            depth -= 1
        elif character == "," and depth == 0:
            found.append(text[begin:at].strip())
            begin = at + 1
        at += 1
    return []


def text_of(argument, source):
    """The string that an argument is: literals, or a constant of the same file. None: neither."""
    literals = LITERAL.findall(argument)
    if literals and not LITERAL.sub("", argument).strip():
        return "".join(literals).replace('\\"', '"')
    if re.fullmatch(r"k\w+", argument):
        constant = re.search(r"\b" + argument + r"(?:\[\])?\s*=((?:\s*\"(?:[^\"\\]|\\.)*\")+)\s*;", source)
        if constant:
            return "".join(LITERAL.findall(constant.group(1)))
    return None


def labels_of(arguments_left, source, position):
    keys = set()
    for argument in arguments_left:
        # {{"kind", x}, …}
        keys.update(re.findall(r'\{\s*"([a-z_]+)"\s*,', argument))
        if re.fullmatch(r"[a-z]+", argument):
            # The function around the call: from the last line that ends a function.
            begin = max(source.rfind("\n}", 0, position), 0)
            keys.update(keys_of_variable(argument, source[begin:position]))
    return keys


def keys_of_variable(name, text):
    keys = set(re.findall(name + r'\["([a-z_]+)"\]', text))
    for value in re.findall(r"Labels " + name + r"(\{.*?\}|\s*=\s*\w+);", text, re.S):
        keys.update(re.findall(r'\{\s*"([a-z_]+)"\s*,', value))
        if copied := re.fullmatch(r"\s*=\s*(\w+)", value):
            keys.update(keys_of_variable(copied.group(1), text))
    return keys


def read_file(path, source):
    for call in CALL.finditer(source):
        parts = arguments(source, call.end())
        if len(parts) < 2:
            continue
        name = text_of(parts[0], source)
        if name is None or not NAME.match(name):
            continue
        help_text = text_of(parts[1], source)
        if help_text is None:
            raise ValueError(f"{path}: the help of {name} is not a text: {parts[1]}")
        keys = labels_of(parts[2:], source, call.start())
        kind = call.group(1).removeprefix("Held").lower()
        yield Metric(name, kind, help_text.rstrip(".") + ".", tuple(sorted(keys)), str(path))


def read(root):
    """All metrics by name."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cc", ".h") or path.stem.endswith("_test") or "testing" in path.parts:
                continue
            source = path.read_text()
            for metric in read_file(path.relative_to(root), source):
                before = found.setdefault(metric.name, metric)
                if (before.type, before.help) != (metric.type, metric.help):
                    raise ValueError(f"{metric.name} is described twice: {before} {metric}")
                if len(metric.labels) > len(before.labels):
                    found[metric.name] = metric
    # A metric name without a call that describes it was not parsed.
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.cc")):
            if path.stem.endswith("_test") or "testing" in path.parts:
                continue
            for name in re.findall(r'"((?:tollgate|gen_ai)_\w+_(?:total|seconds|bytes|info))"', path.read_text()):
                if name not in found:
                    raise ValueError(f"{path}: the description of {name} was not understood")
    return found


if __name__ == "__main__":
    for metric in read(pathlib.Path(__file__).resolve().parents[2]).values():
        print(metric)
