"""Passwords, tokens and keys are replaced one after the other under load: no request fails, no answer is cut, and Redis no longer takes the old
password."""
import os
import secrets

from operation import CALLS, ROUNDS, books_are_right, check, load, none_failed, query, record, secret, start

cluster = start()
there = cluster.machine.containers


def write(name, text):
    with open(f"{cluster.secrets}/{name}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.replace(file.name, f"{cluster.secrets}/{name}")


def restart(*services):
    for service in services:
        for name in (f"{service}-1", f"{service}-2"):
            cluster.wait(f"all replicas are used before {name} is restarted", cluster.all_used)
            cluster.restart(name)


def redis(*command, password=None):
    done = there["redis"].execute("env", f"REDISCLI_AUTH={password or secret(cluster, 'redis_password')}", "redis-cli", "--tls", "--cacert",
                                  "/run/tls/authority.pem", *command)
    return done.stdout.strip()


def replace_postgres_password():
    """Sessions stay when the password of their role changes."""
    new = secrets.token_hex(32)
    query(cluster, f"ALTER ROLE tollgate PASSWORD '{new}'")
    write("postgres_password", new)
    restart("auth", "billing")


def replace_redis_password():
    """A user of Redis may have two."""
    old, new = secret(cluster, "redis_password"), secrets.token_hex(32)
    check(redis("ACL", "SETUSER", "default", f">{new}") == "OK", "Redis takes no second password")
    write("redis_password", new)
    restart("ratelimit")
    check(redis("ACL", "SETUSER", "default", f"<{old}") == "OK", "Redis keeps the old password")
    check("PONG" not in redis("ping", password=old), "the old password of Redis works")


def replace_first_line(name, service):
    """What was sealed with the old key, the second line, can still be opened."""
    write(name, secrets.token_hex(32) + "\n" + secret(cluster, name).split("\n")[0] + "\n")
    restart(service)


def replace(name, service):
    write(name, secrets.token_hex(32))
    restart(service)


calls = load(cluster)
calls.more(CALLS)
for _ in range(ROUNDS):
    replace_postgres_password()
    replace_redis_password()
    replace_first_line("reasoning_key", "gateway")
    replace("idempotency_key", "gateway")
    replace("dashboard_token", "dashboard")
    calls.more(CALLS)
calls.end()
none_failed(calls, "new passwords and keys")
books_are_right(cluster, calls)
record("passwords", calls, replaced=5 * ROUNDS)
