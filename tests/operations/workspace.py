"""A workspace gets its own engines under load, as described in docs/operations/workspace-load.md, is stopped and resumed, and goes back to the
shared ones. No request fails but those that began while it was stopped, no answer is cut."""
import json
import time
import urllib.request

from operation import CALLS, FULL, NAME, Catalog, books_are_right, check, load, metric, none_failed, record, start

MODEL = "demo/own"
# How long the workspace is stopped, and the time after which no call is served; a short run may share the machine.
STOPPED_SECONDS, ACTS_SECONDS = (5, 1) if FULL else (12, 6)
SHARED = Catalog.demo()
OWN = SHARED.replace("models:\n", f"""models:
  - id: {MODEL}
    engine_model: demo/sim-small
    context_window: 32768
    max_output_tokens: 8192
    input_usd_per_million: "0.10"
    output_usd_per_million: "0.40"
    capabilities: [chat, tools, reasoning]
    pool: own
    workspace: demo
    fallbacks: [demo/sim-small]
""", 1).replace("pools:\n", """pools:
  - name: own
    engines:
      - id: own-1
        kind: vllm
        base_url: ${env:TOLLGATE_ENGINE_2}
        max_concurrency: 64
""", 1)
catalog = Catalog(SHARED)


def with_own_catalog(project):
    catalog.mount(project)
    return []


def models(key):
    request = urllib.request.Request(f"http://{NAME}:8080/v1/models", headers={"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return {one["id"] for one in json.load(answer)["data"]}


def everywhere(key, there):
    """Several times, since the load balancer has two gateways."""
    return all((MODEL in models(key)) == there for _ in range(4))


def on_own(name):
    return metric(cluster, name, 'tollgate_router_engine_requests_total{engine="own-1"')


cluster = start(with_own_catalog)
routers = ("router-1", "router-2")
cluster.tollgate("workspace", "create", "Other", "--id", "other")
other = json.loads(cluster.tollgate("--json", "key", "create", "--workspace", "other", "--name", "test"))["secret"]
shared = load(cluster)
shared.more(CALLS)
catalog.write(OWN)
cluster.wait("the workspace has its model", lambda: everywhere(cluster.key, True))
check(everywhere(other, False), "another workspace has the model, too")
# The customer changes the name of the model; running requests end on their engine.
own = load(cluster, model=MODEL)
shared.end()
own.more(CALLS)
cluster.wait("the engine of its own has work from both routers", lambda: all(on_own(name) > 0 for name in routers))
before = time.monotonic()
cluster.tollgate("workspace", "freeze", "demo", "--reason", "a flood")
stopped = time.monotonic()
while time.monotonic() < stopped + STOPPED_SECONDS:
    own.more(CALLS)
begins = time.monotonic()
cluster.tollgate("workspace", "unfreeze", "demo", "--reason", "it is over")
goes_on = time.monotonic()
own.more(2 * CALLS)
back = load(cluster)
own.end()
cluster.wait("nothing runs on its engine", lambda: not sum(
    metric(cluster, name, 'tollgate_router_engine_running_requests{engine="own-1"') for name in routers))
catalog.write(SHARED)
cluster.wait("the model is gone", lambda: everywhere(cluster.key, False))
back.more(CALLS)
back.end()
refused = [one for one in own.calls if one["error"].startswith("402 ")]
check(refused, "a workspace that is stopped is served")
for one in refused:
    check(not one["begun"] and one["at"] + one["seconds"] >= before and one["at"] <= goes_on, f"refused while it was not stopped: {one}")
for one in own.calls:
    check(not stopped + ACTS_SECONDS < one["at"] < begins - 1 or one in refused, f"served while it was stopped: {one}")
own.calls = shared.calls + own.calls + back.calls
none_failed(own, "a workspace that moves to engines of its own", allowed=lambda one: one in refused)
books_are_right(cluster, own)
record("workspace", own, refused=len(refused))
