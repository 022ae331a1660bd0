"""Rules about which files and folders there are, and about pages that describe them."""
import os
import re

from tree import SOURCE, is_test

# The services of one shape. The folders of each are layers: a folder includes those before it, and itself.
SERVICES = {
    "auth": ["domain", "storage", "admin", "rpc", "command"],
    "billing": ["domain", "storage", "verify", "reports", "archive", "statement", "commit", "payments", "alerts", "rpc", "command"],
    "catalog": ["domain", "storage", "rpc"],
    "dashboard": ["transcode", "openapi", "http", "session", "front", "web"],
    "inference_router": ["domain", "balancer", "engine", "count", "settlement", "rpc", "run", "admin"],
    "people": ["domain", "rules", "storage", "mail", "sign_in", "oidc", "rpc"],
    "ratelimit": ["domain", "storage", "redis", "rpc"],
}
# Services whose SQL is in storage/ only.
SQL_IN_STORAGE = {"auth", "catalog", "dashboard", "inference_router", "people", "ratelimit"}
SQL = re.compile(r'"\(?\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|(CREATE|ALTER|DROP) (TABLE|INDEX|UNIQUE))\s')
# Services whose module runs in the process of another service only.
WITHOUT_PROCESS = {"people"}
# Also layers.
GATEWAY = ["worker", "edge", "envelopes", "pipeline", "surfaces", "handlers"]
PIPELINE = ["checks", "admission", "answer"]
REQUIRED = {"dashboard": {"http"}}  # every other service: domain and rpc


def check_pages(path, text, exists):
    """Paths that a page names exist: `common/http`, `services/auth/*_test.cc`, `a/{b,c}.cc`."""
    if not path.endswith(".md"):
        return
    for number, line in enumerate(text.split("\n"), 1):
        for name in re.findall(r"`((?:common|gateway|services|tests|proto|deploy|docs|cmake)/[\w./*{},-]+)`", line):
            braces = re.match(r"(.*)\{(.*)\}(.*)", name)
            names = [braces[1] + part + braces[3] for part in braces[2].split(",")] if braces else [name]
            for one in names:
                if not exists(one.rstrip("/")):
                    yield number, f"there is no {one}"


def check_test_name(path, _, exists):
    """x_test.cc, or x_<aspect>_test.cc, stands beside x.cc or x.h."""
    if not path.endswith("_test.cc") or path.startswith("tests/"):
        return
    folder, name = os.path.split(path)
    parts = name[:-len("_test.cc")].split("_")
    sources = ["_".join(parts[:count]) for count in range(len(parts), 0, -1)]
    if not any(exists(f"{folder}/{source}{ending}") for source in sources for ending in (".cc", ".h")):
        yield 1, f"{folder} has no {sources[0]}.cc or .h: a test is named after a source beside it"


def check_sql(path, text, _):
    """Statements of SQL are in the folder storage/ of a service."""
    parts = path.split("/")
    if parts[0] != "services" or len(parts) < 3 or parts[1] not in SQL_IN_STORAGE or parts[2] == "storage":
        return
    if not path.endswith(SOURCE) or is_test(path):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if SQL.search(line):
            yield number, f"SQL belongs into services/{parts[1]}/storage (SQL_IN_STORAGE of tests/structure/rules_layout.py)"


def check_services(files):
    """Every service has the same shape: see services/README.md."""
    for service in sorted(SERVICES):
        top, folders = set(), set()
        for path in files:
            parts = path.split("/")
            if parts[:2] == ["services", service]:
                (top if len(parts) == 3 else folders).add(parts[2])
        module = f"{service}_module"
        needed = {"CMakeLists.txt", "README.md", f"{module}.cc", f"{module}.h"}
        if service not in WITHOUT_PROCESS:
            needed.add("main.cc")
        for name in sorted(needed - top):
            yield f"services/{service}", 1, f"has no {name}"
        for name in sorted(top - needed):
            if not re.match(module + r"\w*_test\.cc$", name):
                yield f"services/{service}/{name}", 1, "belongs into one of the service's folders"
        for name in sorted(REQUIRED.get(service, {"domain", "rpc"}) - folders):
            yield f"services/{service}", 1, f"has no folder {name}"
        for name in sorted(folders - {"testing"} - set(SERVICES[service])):
            yield f"services/{service}/{name}", 1, "a folder that SERVICES of tests/structure/rules_layout.py lacks"


def check_readmes(files):
    """Every folder of the first level, and every library, has a README.md."""
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


def check_reason_table(read):
    """docs/operations/why-refused.md has the reasons of common/error/reason.cc, in the same order."""
    source, page = "common/error/reason.cc", "docs/operations/why-refused.md"
    code = re.findall(r'\{Reason::k\w+,\s*"(\w+)"\}', read(source))
    rows = re.findall(r"^\| `(\w+)` \| .+ \| .+ \|$", read(page), re.M)
    if not code:
        yield source, 1, "tests/structure/rules_layout.py cannot read the reasons"
    for name in sorted(set(code) ^ set(rows)):
        yield page, 1, f"{name}: is only " + ("in the code" if name in code else "on the page")
    if set(code) == set(rows) and code != rows:
        yield page, 1, "the rows are not in the order of the code, or one stands twice"


def check_error_table(read):
    """docs/errors.md has the rows of the error catalog."""
    code, docs = error_rows(read("common/error/error.cc")), documented_rows(read("docs/errors.md"))
    if not code:
        yield "common/error/error.cc", 1, "tests/structure/rules_layout.py cannot read the error catalog"
    for name in sorted(code.keys() | docs.keys()):
        if code.get(name) != docs.get(name):
            yield "docs/errors.md", 1, f"{name}: the code has {code.get(name)}, the page has {docs.get(name)}"
