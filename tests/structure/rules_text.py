"""Rules about the text of one file: lengths, banned calls, machine paths, fixed ports, build functions."""
import os
import re

from tree import SOURCE, is_test

MAX_LINES, MAX_TEST_LINES = 420, 600
MAX_FUNCTION_LINES = 80
MAX_COLUMNS = 100
# No floating point here (decision 10).
MONEY_FOLDERS = ("common/money/", "services/billing/domain/", "services/billing/commit/", "services/billing/storage/",
                 "services/billing/payments/", "services/billing/alerts/",
                 "services/inference_router/domain/")


def statement_start(lines, index):
    """The line on which the statement begins that ends on this one."""
    while index > 0 and lines[index - 1].strip() and not re.search(r"([;{}]|[^:]:|>)( *//.*)?$", lines[index - 1]) \
            and not re.match(r"\s*(//|#)", lines[index - 1]):
        index -= 1
    return index


def raw_lines(lines):
    """Whether a line is inside a raw string (SQL, JSON), whose layout is data."""
    raw, inside = [], False
    for line in lines:
        raw.append(inside)
        inside = (inside or 'R"' in line) and not re.search(r'\)\w*"', line.split('R"')[-1])
    return raw


def functions(lines):
    """(first line, length) of every function in code that clang-format has formatted."""
    other = re.compile(r"\s*(namespace|class|struct|enum|union|if|for|while|switch|do|try|return|case|extern|\}|//)\b")
    raw = raw_lines(lines)
    for index, line in enumerate(lines):
        if not line.endswith("{"):
            continue
        start = statement_start(lines, index)
        text = " ".join(lines[start:index + 1])
        if other.match(text) or text.lstrip().startswith("}") or "(" not in text:
            continue
        indent = len(text) - len(text.lstrip())
        for end in range(index + 1, len(lines)):
            if re.match(r"^ {%d}\}" % indent, lines[end]):
                yield start + 1, sum(not raw[i] for i in range(start, end + 1))
                break
            if lines[end].startswith("}"):
                break  # a lambda that ends on a shorter line


def check_lengths(path, text, _):
    if not path.endswith(SOURCE):
        return
    lines = text.split("\n")
    limit = MAX_TEST_LINES if is_test(path) else MAX_LINES
    if len(lines) > limit:
        yield 1, f"{len(lines)} lines; {limit} are allowed"
    raw = raw_lines(lines)
    for number, line in enumerate(lines, 1):
        if raw[number - 1] or "http" in line or 'R"' in line or "#include" in line:
            continue  # clang-format cannot break these either
        if len(line) > MAX_COLUMNS:
            yield number, f"{len(line)} columns; {MAX_COLUMNS} are allowed (./dev fmt)"
    for number, length in functions(lines):
        if length > MAX_FUNCTION_LINES and not is_test(path):
            yield number, f"a function of {length} lines; {MAX_FUNCTION_LINES} are allowed"


def code_lines(text):
    """Lines without comments and string contents, numbered."""
    for number, line in enumerate(text.split("\n"), 1):
        line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
        yield number, re.sub(r"//.*", "", line)


CALLS = re.compile(r"system_clock::now|getenv|strcpy|strcat|sprintf|gets|system|popen|tmpnam|rand|double|float|sleep")


# A result that is read into a variable only to return its error.
PROPAGATED = re.compile(r"\bauto (\w+) =[^;{}]*;\s*(?:if \(|; )?!\1(?:\.ok\(\))?\) \{?\s*(?:co_)?return "
                        r"Fail\{(?:std::move\()?\1(?:\)?\.error\(\)|\.error\(\)\))\};")


def check_propagation(path, text, _):
    if not path.endswith((".cc", ".h")) or path.startswith("tests/") or is_test(path) or "/testing/" in path:
        return
    for found in PROPAGATED.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, "TRY or CO_TRY (common/base/try.h) returns the error"


def check_calls(path, text, _):
    if not path.endswith(SOURCE) or not CALLS.search(text):
        return
    test = is_test(path)
    for number, line in code_lines(text):
        if not CALLS.search(line):
            continue
        # gRPC takes deadlines in no other clock.
        if "system_clock::now" in line and not path.startswith("common/base/") and not test:
            before = text.split("\n")[max(0, number - 2):number]
            if not any("deadline" in part or "Shutdown" in part for part in before):
                yield number, "the time comes from a Clock (common/base/clock.h)"
        if "getenv" in line and not test and not path.startswith(("common/config/", "services/cli/")):
            yield number, "configuration comes from common/config, not from the environment"
        if re.search(r"\b(strcpy|strcat|sprintf|gets|system|popen|tmpnam|rand|srand)\s*\(", line):
            if not re.search(r"[.>:]\s*(system|rand)\s*\(", line):
                yield number, "a banned C function"
        # Prometheus has no other numbers.
        metrics = path.endswith("_metrics.cc")
        if re.search(r"\b(double|float)\b", line) and path.startswith(MONEY_FOLDERS) and not test and not metrics:
            yield number, "no floating point in code that handles money"
        slept = re.search(r"\b(?:sleep_for|usleep)\s*\((?:.*milliseconds\((\d+)\))?", line)
        # A short sleep may stand in a polling loop, or before a check that nothing has happened.
        if slept and path.endswith("_test.cc") and "microseconds" not in line and int(slept.group(1) or 1000) > 100:
            yield number, "a test must wait for a condition, not sleep"


# Searched in whole texts: line by line takes seconds.
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
MACHINE_PATH = re.compile(r"(?:^|[\s\"'=:(])/(?:work|home|root|Users)/\w", re.M)
REGISTRY = re.compile(r"registry\.(?:npmjs|yarnpkg)|files\.pythonhosted|pypi\.org|artifactory|\"resolved\":", re.I)


def check_words(path, text, _):
    if path.startswith("tests/structure/"):
        return
    for pattern, message in [(UNFINISHED, "a comment about unfinished work"), (MACHINE_PATH, "an absolute path of one machine"),
                             (REGISTRY, "the host of a package registry: that is a setting of the machine")]:
        if pattern is UNFINISHED and not path.endswith(SOURCE):
            continue
        for found in pattern.finditer(text):
            yield text.count("\n", 0, found.end()) + 1, message


def check_ports(path, text, _):
    if not path.startswith("tests/") or path.startswith("tests/structure/") or path.endswith(".md"):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(r"(127\.0\.0\.1|localhost):[1-9]\d+", line) and "default" not in line and "//" not in line.split("http://")[0]:
            yield number, "a fixed port: a test must take a free one"


def check_cmake(path, text, _):
    if os.path.basename(path) != "CMakeLists.txt" or path in ("CMakeLists.txt", "common/pch/CMakeLists.txt"):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\s*(add_library|add_executable|include_directories|link_libraries|file\s*\(\s*GLOB)", line):
            yield number, "use the functions of cmake/Tollgate.cmake"


def check_envelope(path, text, _):
    if not path.startswith("gateway/") or path.startswith("gateway/envelopes/") or is_test(path):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if path.endswith(SOURCE) and re.search(r'\{\\?"error\\?":', line):
            yield number, "only gateway/envelopes writes an error body"
