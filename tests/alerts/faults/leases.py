"""Leases on the credit of busy workspaces (docs/adr/0042)."""
import pathlib
import re
import threading
import uuid

import cluster
from faults.base import Fault, new_customer
from faults.router import CutOff, start_answer

ADMITTED = re.compile(r'^tollgate_router_lease_admissions_total\{result="admitted"\} (\S+)$', re.M)

# Tokens of one answer: covered by a lease, since earlier answers were as long.
MOST = 20


def with_leases(text):
    return text.replace("\nbilling:\n", "\nbilling:\n  lease_above_requests_per_second: 1\n")


def admitted(observed):
    return float(ADMITTED.search(observed.metrics_of(observed.processes()["inference-router"])).group(1))


def chats(observed, key, condition):
    """Makes calls from several callers at once until the condition holds, for at least one second."""
    stop = threading.Event()

    def run():
        while not stop.is_set():
            observed.chat({"tokens": 5, "token_ms": 1}, key, max_tokens=MOST)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        cluster.wait_for("requests admitted from a lease", 30, condition)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def make_busy(observed, key):
    """Waits until its router admits the requests of that key from a lease."""
    before = admitted(observed)
    chats(observed, key, lambda: admitted(observed) > before + 20)


class PowerCut(Fault):
    """a router is killed during answers that it admitted from a lease, and starts after a reboot of the machine"""
    alerts = ("RouterLostAdmissions",)

    def begin(self, observed):
        self.billing = observed.replace("billing", with_leases)
        _, key = new_customer(observed, "power-cut", "50")
        make_busy(observed, key)
        before = admitted(observed)
        # The ledger does not know of it before its first token; afterwards the router may extend the hold.
        running = start_answer(observed, key, bound=MOST, tokens=MOST, delay_ms=10_000)
        assert admitted(observed) == before + 1
        boot = pathlib.Path(f"{observed.folder}/boot_id")
        boot.write_text(f"{uuid.uuid4()}\n")
        # Simulates a crash of the machine: the journal's records are from another boot.
        self.router = observed.replace("inference-router", prefix=(
            "unshare", "--mount", "sh", "-c", f'mount --bind {boot} /proc/sys/kernel/random/boot_id && exec "$@"', "sh"))
        running.join()

    def end(self, observed):
        observed.restore("inference-router", self.router)

    def put_back(self, observed):
        observed.restore("billing", self.billing)


class CutFromBillingWithALease(CutOff):
    """a router that admits from a lease does not reach billing until the lease ends, and the credit is taken meanwhile"""
    alerts = ("LedgerLeaseOverrun",)

    def change_billing(self, text):
        return with_leases(text)

    def begin(self, observed):
        super().begin(observed)
        workspace, key = new_customer(observed, "cut-with-a-lease", "50")
        make_busy(observed, key)
        self.cut()
        before = admitted(observed)
        chats(observed, key, lambda: admitted(observed) > before + 20)
        # Billing expires no lease in its first minute, and this one a minute after its last renewal.
        self.take_credit(observed, workspace, "open_holds = 0 AND leases = 0", 150)


FAULTS = (PowerCut, CutFromBillingWithALease)
