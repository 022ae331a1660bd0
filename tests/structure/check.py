#!/usr/bin/env python3
"""Keeps the rules of the source tree that no compiler knows: who may include whom, lengths, banned calls, and what
must not stand in a public repository. Prints one line per violation; exit code 1 when there is any."""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# A folder of common/ may include those before it in this list, and itself.
COMMON_ORDER = ["base", "money", "keys", "error", "json", "config", "observability", "runtime", "http", "sql", "rpc",
                "clients", "host"]
MAX_LINES, MAX_TEST_LINES = 420, 600
MAX_FUNCTION_LINES = 80
MAX_COLUMNS = 100
SOURCE = (".cc", ".h")
# Money in floating point is never right (decisions.md 10).
MONEY_FOLDERS = ("common/money/", "services/billing/domain/", "services/billing/commit/", "services/billing/storage/",
                 "services/inference_router/domain/")


def is_test(path):
    return path.startswith("tests/") or "/testing/" in path or path.endswith("_test.cc")


def includes(text):
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if found:
            yield number, found.group(1) == '"', found.group(2)


def common_rule(path, name):
    own, other = path.split("/")[1], name.split("/")[1]
    if own == "pch" or other == own:
        return None
    if own not in COMMON_ORDER or other not in COMMON_ORDER:
        return f"common/{own} or common/{other} is not in COMMON_ORDER of tests/structure/check.py"
    if COMMON_ORDER.index(other) > COMMON_ORDER.index(own):
        return f"common/{own} must not include {name}: it stands above it"
    return None


def include_rule(path, name):
    """What is wrong with this file of ours including that one, or None."""
    area, target = path.split("/")[0], name.split("/")[0]
    if target == "tests" or "/testing/" in name:
        return None if is_test(path) else f"only tests may include {name}"
    if is_test(path) and area == "tests":
        return None
    if area == "common":
        if target in ("gateway", "services"):
            return f"common must not include {name}"
        if target == "common" and not is_test(path):
            return common_rule(path, name)
    if area == "gateway" and target == "services":
        return f"the gateway must not include a service: {name}"
    if area == "services" and not path.startswith("services/allinone/"):
        if target == "gateway":
            return f"a service must not include the gateway: {name}"
        if target == "services" and name.split("/")[1] != path.split("/")[1]:
            return f"a service must not include another: {name}"
    if re.match(r"services/\w+/domain/", path) and not is_test(path):
        own = "/".join(path.split("/")[:3]) + "/"
        if not name.startswith((own, "common/base/", "common/money/", "common/error/")):
            return f"domain code includes only base, money, error and itself: {name}"
    if path.startswith("gateway/surfaces/") and name.startswith(("common/clients/", "common/rpc/")):
        return f"surfaces must not see clients: {name}"
    return None


def system_include_rule(path, name):
    if is_test(path):
        return None
    beast = name.startswith("boost/beast")
    if beast and path.startswith(("gateway/pipeline/", "gateway/surfaces/", "gateway/envelopes/")):
        return f"only the edge sees Beast: <{name}>"
    if beast and path.endswith(".h") and not path.startswith(("common/http/", "common/pch/")):
        return f"Beast stays out of headers: <{name}>"
    if name.startswith("grpc") and path.startswith("gateway/surfaces/"):
        return f"surfaces must not see gRPC: <{name}>"
    if re.match(r"services/\w+/domain/", path) and re.match(r"(grpc|boost|google|thread|mutex|atomic|fstream)", name):
        return f"domain code is pure: <{name}>"
    return None


def check_includes(path, text, exists):
    if not path.endswith(SOURCE):
        return
    for number, ours, name in includes(text):
        if ours and not name.startswith("tollgate/"):
            if "/" not in name or not exists(name):
                yield number, f'"{name}" is not a path from the top of the tree'
                continue
            wrong = include_rule(path, name)
        else:
            wrong = system_include_rule(path, name)
        if wrong:
            yield number, wrong


def statement_start(lines, index):
    """The line on which the statement begins that ends on this one."""
    while index > 0 and lines[index - 1].strip() and not re.search(r"([;{}]|[^:]:|>)( *//.*)?$", lines[index - 1]) \
            and not re.match(r"\s*(//|#)", lines[index - 1]):
        index -= 1
    return index


def raw_lines(lines):
    """Whether a line stands inside a raw string (SQL, JSON): that is data, and its layout is not ours."""
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
                break  # a lambda whose end stands elsewhere


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


def check_calls(path, text, _):
    if not path.endswith(SOURCE):
        return
    test = is_test(path)
    for number, line in code_lines(text):
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
        # Prometheus knows no other numbers.
        metrics = path.endswith("_metrics.cc")
        if re.search(r"\b(double|float)\b", line) and path.startswith(MONEY_FOLDERS) and not test and not metrics:
            yield number, "no floating point where money is"
        slept = re.search(r"\b(?:sleep_for|usleep)\s*\((?:.*milliseconds\((\d+)\))?", line)
        # A short one may stand in a loop that polls, or before a look that nothing has happened.
        if slept and path.endswith("_test.cc") and "microseconds" not in line and int(slept.group(1) or 1000) > 100:
            yield number, "a test must wait for something, not sleep"


def check_words(path, text, _):
    if path.startswith("tests/structure/"):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if path.endswith(SOURCE) and re.search(r"\b(TODO|FIXME|XXX)\b", line):
            yield number, "unfinished business in a comment"
        if re.search(r"(^|[\s\"'=:(])/(work|home|root|Users)/\w", line):
            yield number, "an absolute path of somebody's machine"
        if re.search(r"registry\.(npmjs|yarnpkg)|files\.pythonhosted|pypi\.org|artifactory|\"resolved\":", line, re.I):
            yield number, "the host of a package registry: that is the machine's setting"


def check_ports(path, text, _):
    if not path.startswith("tests/") or path.startswith("tests/structure/") or path.endswith(".md"):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(r"(127\.0\.0\.1|localhost):[1-9]\d+", line) and "default" not in line and "//" not in line.split("http://")[0]:
            yield number, "a fixed port: tests take free ones"


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
            yield number, "only gateway/envelopes turns an error into bytes"


def check_pages(path, text, exists):
    """Paths that a page names are there: `common/http`, `services/auth/*_test.cc`, `a/{b,c}.cc`."""
    if not path.endswith(".md"):
        return
    for number, line in enumerate(text.split("\n"), 1):
        for name in re.findall(r"`((?:common|gateway|services|tests|proto|deploy|docs|cmake)/[\w./*{},-]+)`", line):
            braces = re.match(r"(.*)\{(.*)\}(.*)", name)
            names = [braces[1] + part + braces[3] for part in braces[2].split(",")] if braces else [name]
            for one in names:
                if not exists(one.rstrip("/")):
                    yield number, f"there is no {one}"


PER_FILE = [check_includes, check_lengths, check_calls, check_words, check_ports, check_cmake, check_envelope,
            check_pages]


def check_readmes(files):
    """Every folder of the tree's first level, and every library, says what it is."""
    folders = set()
    for path in files:
        parts = path.split("/")
        if parts[0] in ("common", "gateway", "services", "tests", "proto", "deploy", "docs", "cmake"):
            if len(parts) > 1:
                folders.add(parts[0])
            if len(parts) > 2 and parts[0] in ("common", "gateway", "services", "tests"):
                if any(p.startswith("/".join(parts[:2]) + "/") and p.endswith((".cc", ".h", ".py")) for p in files):
                    folders.add("/".join(parts[:2]))
    for folder in sorted(folders):
        if folder + "/README.md" not in files:
            yield folder, 1, "has no README.md"


def error_rows(source):
    """(status, code, OpenAI type, Messages type, retryable) by name, from common/error/error.cc."""
    pattern = re.compile(r'\{ErrorId::k\w+,\s*"(\w+)",\s*(\d+),\s*"(\w+)",\s*"(\w+)",\s*"(\w+)",\s*(true|false)')
    return {m[0]: (m[1], m[2], m[3], m[4], "yes" if m[5] == "true" else "no") for m in pattern.findall(source)}


def documented_rows(text):
    rows = {}
    for line in text.split("\n"):
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        if len(cells) >= 6 and cells[1].isdigit():
            rows[cells[0]] = tuple(cells[1:6])
    return rows


def check_error_table(read):
    """docs/errors.md and the catalog say the same."""
    code, docs = error_rows(read("common/error/error.cc")), documented_rows(read("docs/errors.md"))
    if not code:
        yield "common/error/error.cc", 1, "tests/structure/check.py cannot read the error catalog any more"
    for name in sorted(code.keys() | docs.keys()):
        if code.get(name) != docs.get(name):
            yield "docs/errors.md", 1, f"{name}: the code has {code.get(name)}, the page has {docs.get(name)}"


def tracked_files():
    try:
        output = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True,
                                capture_output=True, text=True).stdout
        return sorted(p for p in output.split("\0") if p and os.path.isfile(os.path.join(ROOT, p)))
    except (OSError, subprocess.CalledProcessError):
        found = []
        for folder, folders, names in os.walk(ROOT):
            folders[:] = [f for f in folders if f not in ("build", ".git", ".tollgate", "node_modules", "__pycache__")]
            found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names]
        return sorted(found)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def main():
    files = tracked_files()
    known = set(files)
    violations = []

    def exists(name):
        if name in known:
            return True
        if "*" in name:
            return bool(glob.glob(os.path.join(ROOT, name), recursive=True))
        return os.path.isdir(os.path.join(ROOT, name))

    for path in files:
        try:
            text = read(path)
        except UnicodeDecodeError:
            continue  # not text
        for rule in PER_FILE:
            violations += [(path, number, message) for number, message in rule(path, text, exists)]
    violations += list(check_readmes(known))
    violations += list(check_error_table(read))
    for path, number, message in violations:
        print(f"{path}:{number}: {message}")
    print(f"{len(files)} files checked, {len(violations)} violations", file=sys.stderr)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
