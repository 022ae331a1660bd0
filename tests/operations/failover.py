"""The databases of the profile "ha" are lost one after the other under load: all processes of the Redis that has the limits, and of the
PostgreSQL that is the primary. Limits go on, and no call notices the first; of the second, calls may be refused for Patroni's ttl. Each
member comes back and follows, and Prometheus sees it; whole answers are charged once, and the ledger verifies."""
import json
import ssl
import time
import urllib.error
import urllib.request

from on_ha import REDIS, Databases
from operation import CALLS, FULL, NAME, ROUNDS, books_are_right, check, load, metric, none_failed, record

TTL = 20  # deploy/postgres/patroni.yml
LIMIT = 4  # requests a minute
LIMITERS = ("ratelimit-1", "ratelimit-2")


class Limited:
    """Calls with a key whose limit is used up."""

    def __init__(self):
        cluster.tollgate("workspace", "create", "Limited", "--id", "limited")
        cluster.tollgate("credit", "add", "--workspace", "limited", "5")
        self.key = json.loads(cluster.tollgate("--json", "key", "create", "--workspace", "limited", "--requests-per-minute", str(LIMIT)))["secret"]
        self.tls = ssl.create_default_context(cafile=f"{cluster.secrets}/tls/authority.pem")
        self.began, self.granted, self.refused, self.other = time.monotonic(), 0, 0, []

    def call(self):
        body = {"model": "demo/sim-small", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2, "x_sim": {"tokens": 1}}
        request = urllib.request.Request(f"https://{NAME}:8443/v1/chat/completions", json.dumps(body).encode(),
                                         {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=30):
                self.granted += 1
                return 200
        except urllib.error.HTTPError as error:
            if error.code == 429:
                self.refused += 1
            else:
                self.other.append(error.code)
            return error.code

    def check(self):
        """A run of any length gets the burst plus the rate; while Redis is lost, 1.2 times the rest of it."""
        most = LIMIT + 1.2 * LIMIT * (time.monotonic() - self.began) / 60 + len(LIMITERS)
        check(self.granted <= most, f"{self.granted} calls of a key with {LIMIT} a minute were let in; {most:.1f} are allowed")
        check(not self.other, f"calls of a key with a limit got {self.other}")


def followed():
    return all(metric(cluster, name, "tollgate_ratelimit_redis_up") == 1 for name in LIMITERS)


def lose_redis():
    old = databases.redis_leader()
    calls.more(CALLS)
    while limited.call() != 429:
        pass
    at = time.monotonic()
    databases.there[old].kill()
    cluster.wait("the limiters notice", lambda: limited.call() and not followed(), 20)
    cluster.wait("a Sentinel names another Redis", lambda: limited.call() and databases.redis_leader() not in ("", old), 60)
    cluster.wait("the limiters follow", lambda: limited.call() and followed(), 20)
    lost = time.monotonic() - at
    calls.more(CALLS)
    new = databases.redis_leader()
    check(int(databases.redis(new, "dbsize")) > 0, f"{new} has no limits")
    databases.there[old].start()
    cluster.wait(f"{old} follows {new}", lambda: f"master_host:{new}" in databases.redis(old, "info", "replication") and
                 "master_link_status:up" in databases.redis(old, "info", "replication"), 60)
    calls.more(CALLS)
    limited.check()
    none_failed(calls, "a lost Redis")
    return round(lost, 1)


def answers():
    """Waits for ten successful calls in a row."""
    calls.more(10)
    return all(one["whole"] for one in calls.calls[-10:])


def lose_postgres():
    """Seconds until another node was primary, and until the last refusal."""
    old, new = databases.leader(), databases.standby()
    calls.more(CALLS)
    before = len(calls.failed())
    at = time.monotonic()
    databases.there[old].kill()
    cluster.wait(f"{new} leads", lambda: databases.leader() == new, TTL + 30)
    led = time.monotonic() - at
    cluster.wait("calls are answered", answers, 60)
    databases.there[old].start()
    databases.wait_both()
    check(databases.leader() == new, f"{old} leads again")
    cluster.wait("Prometheus sees the new primary and its standby", databases.watched)
    calls.more(CALLS)
    refused = calls.failed()[before:]
    last = max((one["at"] + one["seconds"] - at for one in refused), default=0)
    check(last <= TTL + (5 if FULL else 60), f"a call was refused {last:.1f} s after the loss; ttl is {TTL} s")
    cut = [one for one in refused if one["begun"] or not one["error"].startswith("503")]
    none_failed(calls, "a lost PostgreSQL", allowed=lambda one: one in refused and one not in cut)
    return round(led, 1), round(last, 1), len(refused)


databases = Databases()
cluster = databases.cluster
cluster.wait("Prometheus reads Patroni and etcd", databases.watched)
calls, limited = load(cluster), Limited()
redis, postgres = [], []
for _ in range(ROUNDS):
    redis.append(lose_redis())
    postgres.append(lose_postgres())
calls.end()
books_are_right(cluster, calls)
record("failover", calls, limits_shared_again_s=redis, other_primary_s=[one[0] for one in postgres], last_refusal_s=[one[1] for one in postgres],
       refused=[one[2] for one in postgres], limited_granted=limited.granted, limited_refused=limited.refused)
