"""The chart as the tests see it: rendered objects, and lists of values that cover every switch."""
import functools
import hashlib
import itertools
import json
import os
import random
import subprocess
import sys

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHART = os.path.join(ROOT, "deploy/helm/tollgate")
PARTS = os.environ.get("TOLLGATE_PARTS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tollgate/parts")
PART = os.path.join(PARTS, "helm-v3.22.0")
HELM = os.path.join(PART, "helm")
NAMESPACE = "gate"
SERVICES = ["auth", "billing", "catalog", "dashboard", "gateway", "inference-router", "ratelimit"]


def skip_without_helm():
    if not os.access(HELM, os.X_OK):
        print(f"no {HELM}: get it with ./dev parts helm", file=sys.stderr)
        sys.exit(77)


class Loader(yaml.CSafeLoader):
    """Refuses duplicate keys, as Kubernetes does in strict mode."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.YAMLError(f"twice: {sorted(map(str, twice))} at {node.start_mark}")
        return super().construct_mapping(node, deep)


def values_of(path=os.path.join(CHART, "values.yaml")):
    with open(path, encoding="utf-8") as file:
        return yaml.load(file, Loader)


def table():
    return values_of(os.path.join(CHART, "files/callers.yaml"))


# Values that an installation must give; set in every rendering unless a case overrides them.
GIVEN = {"trustedProxies": ["10.0.0.0/8"], "secrets": {"existingSecret": "given"},
         "postgresql": {"host": "pg.example", "caSecret": "pg-ca"}, "redis": {"url": "redis://r:6379"},
         "catalog": {"existingConfigMap": "given-catalog"}}
TRYING = {"trustedProxies": ["none"], "secrets": {"generate": True}, "tls": {"mode": "off"}, "postgresql": {"mode": "builtin"}, "redis": {"mode": "builtin"},
          "simulatedEngines": {"enabled": True}}


def merged(*trees):
    result = {}
    for tree in trees:
        for key, value in tree.items():
            both = isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = merged(result[key], value) if both else value
    return result


def helm(*arguments, stdin=None):
    environment = {**os.environ, "HELM_CACHE_HOME": "/tmp/helm-none", "HELM_CONFIG_HOME": "/tmp/helm-none"}
    return subprocess.run([HELM, *arguments], input=stdin, capture_output=True, text=True, env=environment, check=False)


def template(values, chart=CHART, release="t", extra=()):
    """(objects, error)."""
    done = helm("template", release, chart, "--namespace", NAMESPACE, "--values", "-", *extra, stdin=json.dumps(values))
    if done.returncode != 0:
        return None, done.stderr
    return [one for one in yaml.load_all(done.stdout, Loader) if one is not None], ""


def render(values=None, **arguments):
    objects, error = template(GIVEN if values is None else values, **arguments)
    if objects is None:
        raise AssertionError(error)
    return objects


def named(objects, kind, name):
    return next((one for one in objects if one["kind"] == kind and one["metadata"]["name"] == name), None)


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def pod_templates(objects):
    """(owner, template) of all objects that create pods."""
    for one in objects:
        if one["kind"] in ("Deployment", "StatefulSet", "Job"):
            yield one, one["spec"]["template"]
        if one["kind"] == "Pod":
            yield one, one


def configs(objects):
    """(service, text) of each configuration file."""
    for one in objects:
        if one["kind"] == "ConfigMap" and "config.yaml" in one["data"]:
            name = one["metadata"]["name"].removeprefix("t-tollgate-")
            yield name.removeprefix("migrate-"), one["data"]["config.yaml"]


# --- values that cover every switch ---------------------------------------------------------------

def schema():
    with open(os.path.join(CHART, "values.schema.json"), encoding="utf-8") as file:
        return json.load(file)


def properties(node, root):
    """Objects that the object references."""
    found, refused = {}, node.get("propertyNames", {}).get("not", {}).get("enum", [])
    if "$ref" in node:
        found.update(properties(root["definitions"][node["$ref"].rsplit("/", 1)[1]], root))
    for part in node.get("allOf", []):
        found.update(properties(part, root))
    found.update(node.get("properties", {}))
    return {key: value for key, value in found.items() if key not in refused}


def leaves(node, root, path=()):
    below = properties(node, root)
    if not below:
        yield path, node
    for key, child in below.items():
        yield from leaves(child, root, path + (key,))


# Strings whose presence switches something.
TEXTS = {
    "fullnameOverride": "gate", "nameOverride": "gate", "dashboardUrl": "https://d.example", "image.registry": "r.example/", "image.tag": "2",
    "secrets.existingSecret": "given", "postgresql.reportsHost": "db-ro",
    "postgresql.caSecret": "pg-ca", "redis.caSecret": "redis-ca", "redis.user": "gate",
    "catalog.file": "models: []\npools: []\n", "catalog.existingConfigMap": "given-catalog", "catalog.engineKeysSecret": "keys",
    "services.gateway.tlsSecret": "edge", "services.dashboard.tlsSecret": "edge", "services.inference-router.storageClass": "fast",
    "ingress.className": "nginx", "ingress.tlsSecret": "edge", "ingress.dashboardHost": "d.example",
    "defaults.priorityClassName": "high", "tls.secrets.prefix": "given-",
    "tracing.otlpEndpoint": "otel-collector.monitoring:4317",
}
LISTS = {
    "image.pullSecrets": ["pull"], "commonLabels": {"team": "a"}, "image.digests": {"gateway": "sha256:" + "0" * 64},
    "tls.certManager.issuerRef": {"name": "corporate", "kind": "ClusterIssuer"},
    "defaults.affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}}]}},
    "defaults.tolerations": [{"key": "a", "operator": "Exists"}], "defaults.nodeSelector": {"pool": "cpu"},
    "defaults.topologySpread": [], "defaults.podAnnotations": {"a": "b"}, "defaults.podLabels": {"a": "b"},
    "defaults.extraEnv": [{"name": "A", "value": "b"}], "defaults.extraSecretKeys": ["more"],
    "defaults.serviceAccountAnnotations": {"a": "b"},
    "defaults.extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    "networkPolicy.clients": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "networkPolicy.engines": [{"ipBlock": {"cidr": "10.1.0.0/16"}}],
    "networkPolicy.databases": [{"ipBlock": {"cidr": "10.2.0.0/16"}}], "networkPolicy.redis": [{"ipBlock": {"cidr": "10.3.0.0/16"}}],
    "networkPolicy.collector": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
    "networkPolicy.internet": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}], "networkPolicy.prometheus": [],
    "gatewayApi.dashboardHostnames": ["d.example"], "monitoring.labels": {"release": "p"},
    "services.gateway.config": {"gateway": {"keep_alive_seconds": 20}},
}


def factors():
    """The values of each switch: booleans and enumerations of the schema, and what may be left out."""
    root, found = schema(), {}
    for path, leaf in leaves(root, root):
        name = ".".join(path)
        shared = path[0] == "services" and path[2] in root["properties"]["defaults"].get("properties", {})
        if leaf.get("type") == "boolean" and not shared:
            found[name] = [False, True]
        elif "enum" in leaf and not (path[0] == "services" and path[2] == "antiAffinity"):
            found[name] = leaf["enum"]
    for name, value in TEXTS.items():
        found[name] = ["", value]
    for name, value in LISTS.items():
        found[name] = [None, value]
    return found


def tree_of(row):
    tree = {}
    for name, value in row.items():
        if value is None:
            continue
        node = tree
        *path, last = name.split(".")
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    tree = merged({"trustedProxies": ["10.0.0.0/8"], "postgresql": {"host": "pg.example"}, "redis": {"url": "redis://r:6379"}, "ingress": {"host": "a.example"},
                   "gatewayApi": {"parentRefs": [{"name": "edge", "namespace": "edge"}], "hostnames": ["a.example"]}}, tree)
    # Values that an installation must give in one form or another.
    if not tree["secrets"]["existingSecret"]:
        tree["secrets"]["generate"] = True
    if not (tree["catalog"]["file"] or tree["catalog"]["existingConfigMap"]):
        tree["simulatedEngines"]["enabled"] = True
    if tree["postgresql"]["sslMode"].startswith("verify") and not tree["postgresql"]["caSecret"]:
        tree["postgresql"]["caSecret"] = "pg-ca"
    if "extraVolumeMounts" in tree["defaults"]:
        tree["defaults"]["extraVolumes"] = [{"name": "more", "emptyDir": {}}]
    if tree["services"]["billing"]["webhooks"]:
        tree["services"]["billing"]["config"] = {"billing": {"payments": {
            "stripe_webhook_secret_file": "/run/secrets/stripe", "provider": "manual"}}}
        tree["services"]["billing"]["extraSecretKeys"] = ["stripe"]
    return tree


def combinations(seed=1):
    """Rows in which every pair of values of two switches stands together at least once."""
    switches = factors()
    names = list(switches)
    places = {name: range(len(switches[name])) for name in names}
    missing = {((a, x), (b, y)) for a, b in itertools.combinations(names, 2) for x in places[a] for y in places[b]}
    generator, rows = random.Random(seed), []
    while missing:
        order, best, gained = sorted(missing), None, set()
        for _ in range(15):
            row = {name: generator.choice(places[name]) for name in names}
            row.update(generator.choice(order))
            gain = {pair for pair in itertools.combinations(row.items(), 2) if pair in missing}
            if len(gain) > len(gained):
                best, gained = row, gain
        missing -= gained
        rows.append(tree_of({name: switches[name][place] for name, place in best.items()}))
    return rows


@functools.lru_cache(maxsize=None)
def rendered():
    """(values, objects) of what an installation must give, of one for trying, and of each combination."""
    found = []
    for values in [GIVEN, TRYING, *combinations()]:
        objects, error = template(values)
        if objects is None:
            raise AssertionError(f"{error}\n{json.dumps(values)}")
        found.append((values, objects))
    return found
