"""Every certificate is replaced under load, also those of the databases and the load balancer: no request fails, no answer is cut, and
new connections have the new certificates."""
import signal

from operation import CALLS, ROUNDS, books_are_right, check, load, none_failed, record, start

cluster = start()
there = cluster.machine.containers


def serial(who, where, *more):
    """The serial number of a server's certificate."""
    done = there[who].execute("bash", "-c", 'openssl s_client "$@" </dev/null 2>/dev/null | openssl x509 -noout -serial', "_",
                              "-connect", where, *more)
    check(done.returncode == 0, f"{where} shows {who} no certificate: {done.stderr}")
    return done.stdout


SERVERS = [("gateway-1", f"{name}:7000", "-alpn", "h2") for name in (
    "auth-1", "auth-2", "billing-1", "billing-2", "catalog-1", "catalog-2", "ratelimit-1", "ratelimit-2", "router-1", "router-2")]
SERVERS += [("load-balancer", "gateway-1:8080"), ("load-balancer", "gateway-2:8080"), ("load-balancer", "dashboard-1:8081"),
            ("gateway-1", "load-balancer:8443"), ("auth-1", "postgres:5432", "-starttls", "postgres"), ("ratelimit-1", "redis:6379")]
calls = load(cluster)
calls.more(CALLS)
for _ in range(ROUNDS):
    old = {server: serial(*server) for server in SERVERS}
    cluster.make_secrets("--rotate")
    # The commands of docs/operations/compose.md.
    done = there["postgres"].execute("install", "-m", "600", "/run/tls/private_key.pem", "/tmp/server.key")
    check(done.returncode == 0, done.stderr)
    there["postgres"].signal(signal.SIGHUP)
    there["load-balancer"].signal(signal.SIGUSR2)
    cluster.restart("redis")
    for server in SERVERS:
        cluster.wait(f"{server[1]} shows its new certificate", lambda: serial(*server) != old[server], 30)
    calls.more(CALLS)
calls.end()
none_failed(calls, "new certificates")
books_are_right(cluster, calls)
record("certificates", calls, certificates=len(SERVERS), rounds=ROUNDS)
