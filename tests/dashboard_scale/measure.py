#!/usr/bin/env python3
"""Fills an installation with a workspace of the largest size, and measures each call that the dashboard's pages make on it.

    measure.py BIN [--requests N] [--keys N] [--members N] [--home FOLDER] [--record PAGE]

Every call must answer within 300 ms, by the median of several; the first one, mostly from the disk, is reported as well. With
--home that folder is filled when it is empty, and kept. --record appends the figures to a page in Markdown, also
those that are too high.
"""
import argparse
import datetime
import json
import math
import os
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT_MS = 300
RUNS = 7
SECRETS = ["pepper", "dashboard-token", "idempotency-key", "reasoning-key", "webhook-seal-key"]


def prepare(home):
    """As ./dev run makes it."""
    for folder in ["config", "secrets", "data/router", "run", "logs"]:
        os.makedirs(os.path.join(home, folder), mode=0o700)
    for name in SECRETS:
        with open(os.path.join(home, "secrets", name), "w") as file:
            file.write(os.urandom(32).hex())
    key = os.path.join(home, "secrets", "audit-checkpoint-key")
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True, stderr=subprocess.DEVNULL)
    shutil.copy(os.path.join(ROOT, "deploy/config/allinone.yaml"), os.path.join(home, "config/allinone.yaml"))
    shutil.copy(os.path.join(ROOT, "deploy/config/catalog.demo.yaml"), os.path.join(home, "config/catalog.yaml"))


def free_ports():
    held = [socket.socket() for _ in range(2)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [str(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports


class Product:
    """The all-in-one on that folder, called with the login token."""

    def __init__(self, binaries, home, env):
        self.log = open(os.path.join(home, "logs/tollgate.log"), "w")
        addresses = os.path.join(home, "run/addresses.json")
        if os.path.exists(addresses):
            os.remove(addresses)
        self.process = subprocess.Popen([f"{binaries}/tollgate-allinone", "--config", f"{home}/config/allinone.yaml"],
                                        env=env, stdout=self.log, stderr=self.log)
        self.token = open(os.path.join(home, "secrets/dashboard-token")).read()
        self.open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
        deadline = time.monotonic() + 120
        while True:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the all-in-one did not start: {self.log.name}")
            try:
                found = json.load(open(addresses))
                self.url = f"http://127.0.0.1:{env['TOLLGATE_DASHBOARD_PORT']}"
                self.open(f"http://{found['admin']}/readyz").read()
                return
            except (OSError, KeyError, ValueError):
                time.sleep(0.1)

    def get(self, path):
        """The answer and its milliseconds."""
        request = urllib.request.Request(self.url + "/admin/v1/" + path, headers={"authorization": "Bearer " + self.token})
        begin = time.monotonic()
        with self.open(request) as answer:
            body = answer.read()
        return json.loads(body), (time.monotonic() - begin) * 1000

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def wait_until_rolled_up(home):
    """Billing starts with the backlog of the filling: in a running installation, the roll-ups are seconds behind."""
    database = sqlite3.connect(f"file:{home}/data/billing.db?mode=ro", uri=True)
    (last,) = database.execute("SELECT MAX(sequence) FROM entry WHERE workspace = 'demo'").fetchone()
    while True:
        cut = database.execute("SELECT sequence FROM rollup_cut WHERE workspace = 'demo'").fetchone()
        if cut and cut[0] >= last:
            break
        time.sleep(1)
    database.close()


def calls_of(product):
    """The pages and what they ask for, with ids of this installation put in."""
    # Like the pages: to the end of the running quarter of an hour.
    now = datetime.datetime.fromtimestamp(-(-time.time() // 900) * 900, datetime.timezone.utc)
    ago = lambda days: (now - datetime.timedelta(days=days)).isoformat().replace("+00:00", "Z")
    end = now.isoformat().replace("+00:00", "Z")
    w = "workspaces/demo/"
    usage = lambda **query: w + "usage:query?" + urllib.parse.urlencode(query)
    page, _ = product.get(w + "requests?pageSize=50")
    receipt = page["receipts"][0]
    key = receipt["key"].split("/")[-1]
    far = urllib.parse.quote(page["nextPageToken"])
    filtered = urllib.parse.quote(f'key = "{receipt["key"]}" AND create_time >= "{ago(30)}"')
    model = urllib.parse.quote('model = "demo/sim-large"')
    month = now.strftime("%Y-%m")
    return {
        "Home": [w + "summary", w + "balance", usage(startTime=ago(30), endTime=end, interval="USAGE_INTERVAL_DAY", groupBy="USAGE_GROUP_MODEL"),
                 w + "requests?pageSize=4"],
        "Keys": [w + "keys?view=KEY_VIEW_TOP_SPENT", w + "keys?pageSize=200", w + "keys?query=service-777", w + "keys?query=nothing-like-this"],
        "A key": [w + "keys/" + key, usage(startTime=ago(30), endTime=end, interval="USAGE_INTERVAL_DAY", groupBy="USAGE_GROUP_MODEL", filter=f'key = "{receipt["key"]}"'),
                  w + f"keys/{key}/modelLimits"],
        "Usage": [usage(startTime=ago(1), endTime=end, interval="USAGE_INTERVAL_HOUR", groupBy="USAGE_GROUP_MODEL"),
                  usage(startTime=ago(7), endTime=end, interval="USAGE_INTERVAL_NONE", groupBy="USAGE_GROUP_MODEL", top=100),
                  usage(startTime=ago(7), endTime=end, interval="USAGE_INTERVAL_DAY", groupBy="USAGE_GROUP_KEY", timeZone="Asia/Kolkata"),
                  usage(startTime=ago(30), endTime=end, interval="USAGE_INTERVAL_NONE", groupBy="USAGE_GROUP_KEY", top=100)],
        "Requests": [w + "requests?pageSize=50", w + f"requests?pageSize=50&pageToken={far}", w + "requests?pageSize=50&filter=" + filtered,
                     w + "requests?pageSize=50&filter=" + model],
        "A request": [receipt["name"], w + "requests/" + receipt["clientRequestId"], "workspaces/-/requests/" + receipt["name"].split("/")[-1]],
        "Models": ["models?pageSize=200"],
        "Limits": [w + "limits", w + "limits:usage"],
        "Billing": [w + "payments?pageSize=50", w + "autoReload", w + "cap", w + "alertSettings"],
        "Transactions": [w + "transactions?pageSize=50"],
        "Statements": [w + "statements", w + "statements/" + month],
        "Members": [w + "members?pageSize=50", w + "members?query=Person%2077", w + "invitations"],
        "Audit log": [w + "auditEntries?pageSize=50", w + "auditEntries?pageSize=50&filter=" + urllib.parse.quote('action = "key.import"')],
        "Operators": ["workspaces?pageSize=50", "engines?pageSize=200", "processes", "users?pageSize=50", "auditEntries?pageSize=50", "deadLetters?pageSize=50"],
    }


def measure(product):
    """Rows of page, call, first and median milliseconds."""
    rows = []
    for page, calls in calls_of(product).items():
        for call in calls:
            took = []
            for _ in range(RUNS):
                try:
                    took.append(product.get(call)[1])
                except urllib.error.HTTPError as error:
                    if error.code != 504:
                        raise SystemExit(f"{call}: {error.code} {error.read().decode()}") from error
                    took.append(math.inf)  # no answer in time; the others would not be faster
                    break
            rows.append((page, urllib.parse.unquote(call.split("?")[0]) + ("?…" if "?" in call else ""), took[0], statistics.median(took), call))
    return rows


def told(ms):
    return "no answer" if ms == math.inf else f"{ms:.0f} ms"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--keys", type=int, default=2_000)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--home")
    parser.add_argument("--record")
    options = parser.parse_args()
    home = options.home or tempfile.mkdtemp(prefix="tollgate-scale-")
    ports = free_ports()
    env = dict(os.environ, TOLLGATE_HOME=home, TOLLGATE_ADMIN_SOCKET=f"{home}/run/admin.sock", TOLLGATE_PORT=ports[0], TOLLGATE_DASHBOARD_PORT=ports[1])
    try:
        if not os.path.exists(f"{home}/data/billing.db"):
            prepare(home)
            subprocess.run([f"{options.bin}/tollgate-scale-fill", "--config", f"{home}/config/allinone.yaml", "--requests", str(options.requests),
                            "--keys", str(options.keys), "--members", str(options.members)], check=True, env=env)
        product = Product(options.bin, home, env)
        try:
            wait_until_rolled_up(home)
            rows = measure(product)
        finally:
            product.stop()
    finally:
        if not options.home:
            shutil.rmtree(home)
    table = ["| page | call | first | median |", "|---|---|---|---|"]
    table += [f"| {page} | `{call}` | {told(first)} | {told(median)} |" for page, call, first, median, _ in rows]
    print("\n".join(table))
    slow = [f"{page}: {call}: {told(median)}" for page, _, _, median, call in rows if median > LIMIT_MS]
    if options.record:
        with open(options.record, "a") as file:
            commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
            file.write(f"\n### dashboard-scale, {datetime.date.today()}, commit {commit}\n\nOne workspace with {options.keys:,} keys, {options.requests:,} requests of "
                       f"30 days and {options.members:,} members, SQLite; the calls of each page, {RUNS} times, over HTTP.\n\n" + "\n".join(table) + "\n")
    if slow:
        sys.exit("over 300 ms:\n" + "\n".join(slow))


if __name__ == "__main__":
    main()
