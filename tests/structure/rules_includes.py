"""Rule: which file may include which."""
import re

from rules_layout import GATEWAY, PIPELINE, SERVICES
from tree import SOURCE, is_test

# A folder of common/ may include those before it in this list, and itself.
COMMON_ORDER = ["base", "coding", "money", "checkpoint", "keys", "engines", "error", "json", "config", "observability", "runtime", "http", "mail", "sql", "audit", "auth_schema", "rpc", "tracing",
                "admin", "clients", "host"]


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
        return f"common/{own} or common/{other} is not in COMMON_ORDER of tests/structure/rules_includes.py"
    if COMMON_ORDER.index(other) > COMMON_ORDER.index(own):
        return f"common/{own} must not include {name}: it is a higher layer"
    return None


def layer_rule(path, name):
    """Inside the gateway, its pipeline or a service, a folder includes only those before it in the list of its layers."""
    rooms = [("gateway", GATEWAY), ("gateway/pipeline", PIPELINE)] + [(f"services/{one}", layers) for one, layers in SERVICES.items()]
    for room, layers in rooms:
        if is_test(path) or not path.startswith(room + "/") or not name.startswith(room + "/"):
            continue
        own, other = path[len(room) + 1:].split("/")[0], name[len(room) + 1:].split("/")[0]
        if own == other or own not in layers:
            continue
        # Files of the pipeline itself are what its folders share.
        if other not in layers and room == "gateway/pipeline":
            continue
        if other not in layers or layers.index(other) > layers.index(own):
            return f"{room}/{own} must not include {name}: it is a higher layer (tests/structure/rules_layout.py)"
    return None


def include_rule(path, name):
    """Why this file must not include that file of the tree, or None."""
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
        other = name.split("/")[1]
        composes = path.endswith("/main.cc") and name == f"services/{other}/{other}_module.h"
        if target == "services" and other != path.split("/")[1] and not composes:
            return f"a service must not include another: {name}"
    if wrong := layer_rule(path, name):
        return wrong
    if re.match(r"services/\w+/domain/", path) and not is_test(path):
        own = "/".join(path.split("/")[:3]) + "/"
        if not name.startswith((own, "common/base/", "common/money/", "common/engines/", "common/error/")):
            return f"domain code includes only base, money, engines, error and itself: {name}"
    if path.startswith("gateway/surfaces/") and name.startswith(("common/clients/", "common/rpc/")):
        return f"surfaces must not include clients: {name}"
    return None


def system_include_rule(path, name):
    if is_test(path):
        return None
    beast = name.startswith("boost/beast")
    if beast and path.startswith(("gateway/pipeline/", "gateway/surfaces/", "gateway/envelopes/")):
        return f"only the edge includes Beast: <{name}>"
    if beast and path.endswith(".h") and not path.startswith(("common/http/", "common/pch/")):
        return f"headers must not include Beast: <{name}>"
    if name.startswith("grpc") and path.startswith("gateway/surfaces/"):
        return f"surfaces must not include gRPC: <{name}>"
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
