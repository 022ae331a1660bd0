"""The ledger: billing and its database."""
import contextlib
import os
import pathlib
import resource
import sqlite3
import subprocess
import threading
import time

import cluster
from faults.base import Calls, Fault, FolderInsteadOfFile, Stopped, change_database, limit_files, new_customer


class BillingStops(Stopped):
    """billing hangs while an answer ends"""
    alerts = ("SettlementsWait", "AuditCopyLags")
    process = "billing"

    def begin(self, observed):
        running = threading.Thread(target=observed.chat, args=({"tokens": 60, "token_ms": 100},), kwargs={"stream": True})
        running.start()
        router = observed.processes()["inference-router"]
        cluster.wait_for("a running answer", 10, lambda: "tollgate_router_running_requests 1" in observed.metrics_of(router))
        super().begin(observed)
        self.running = running

    def end(self, observed):
        super().end(observed)
        self.running.join()


class LedgerCheckpoints(Fault):
    """the file of the ledger's checkpoints cannot be written"""
    alerts = ("LedgerCheckpointsFail",)

    def begin(self, observed):
        self.file = FolderInsteadOfFile(f"{observed.folder}/ledger.checkpoints")

    def end(self, observed):
        self.file.undo()


class RollUps(Calls):
    """the database refuses to write a roll-up"""
    alerts = ("LedgerRollUpsFail",)

    def begin(self, observed):
        change_database(observed, "billing", "CREATE TRIGGER refused BEFORE INSERT ON workspace_quarter BEGIN SELECT RAISE(ABORT, 'refused'); END")
        super().begin(observed)

    def end(self, observed):
        super().end(observed)
        change_database(observed, "billing", "DROP TRIGGER refused")


class Archive(Fault):
    """the database refuses to record a run of the archive"""
    alerts = ("LedgerArchiveFails",)
    patience = 100  # billing checks a minute after its start

    def begin(self, observed):
        change_database(observed, "billing", "CREATE TRIGGER refused_archive BEFORE INSERT ON archive_run BEGIN SELECT RAISE(ABORT, 'refused'); END")
        change_database(observed, "billing", "DELETE FROM archive_run")
        observed.tell("kill billing")
        observed.tell("start billing")

    def end(self, observed):
        change_database(observed, "billing", "DROP TRIGGER refused_archive")


class LongOutage(Stopped):
    """billing hangs for more than ten minutes after a call that was refused"""
    alerts = ("GatewayDropsVoids",)
    process = "billing"
    patience = 660

    def begin(self, observed):
        super().begin(observed)
        assert observed.chat()[0] == 503


class ChangedEntry(Fault):
    """an amount in the ledger is changed; it is put back"""
    alerts = ("LedgerDoesNotVerify",)

    def change(self, observed, by):
        change_database(observed, "billing", "UPDATE entry SET amount = amount + ? WHERE workspace = ? AND sequence = 1",
                        (by, observed.facts["workspaces"]["good"]))
        observed.operator("verify-ledger")

    def begin(self, observed):
        self.change(observed, 1)

    def end(self, observed):
        self.change(observed, -1)


class ChangedHead(Calls):
    """the newest hash in a wallet is changed; it is put back"""
    alerts = ("LedgerInvariantBroken", "LedgerWorkspaceFrozen")

    def begin(self, observed):
        self.workspace, self.key = new_customer(observed, "changed-head")
        self.head = change_database(observed, "billing", "SELECT head FROM wallet WHERE workspace = ?", (self.workspace,))[0][0]
        observed.tell("kill billing")  # a process checks each wallet before it uses it first
        change_database(observed, "billing", "UPDATE wallet SET head = ? WHERE workspace = ?", (bytes(32), self.workspace))
        observed.tell("start billing")
        time.sleep(3)  # its counters are scraped
        super().begin(observed)

    def call(self, observed):
        observed.chat(key=self.key)

    def end(self, observed):
        super().end(observed)
        change_database(observed, "billing", "UPDATE wallet SET head = ?, frozen = 0 WHERE workspace = ?", (self.head, self.workspace))


class SomeWorkspaces(Fault):
    """the database refuses the holds of five workspaces"""
    alerts = ("LedgerWorkspacesIsolated",)

    def begin(self, observed):
        keys = [new_customer(observed, f"isolated-{number}")[1] for number in range(5)]
        change_database(observed, "billing", "CREATE TRIGGER refused_hold BEFORE INSERT ON hold WHEN NEW.workspace LIKE 'isolated-%' "
                                             "BEGIN SELECT RAISE(ABORT, 'refused'); END")
        calls = [threading.Thread(target=observed.chat, kwargs={"key": key}) for key in keys]
        for call in calls:
            call.start()
        for call in calls:
            call.join()

    def end(self, observed):
        change_database(observed, "billing", "DROP TRIGGER refused_hold")


class OneWorkspace(Calls):
    """the database refuses the holds of one workspace"""
    alerts = ("LedgerWorkspaceNotWritten",)
    patience = 330  # a failure of an earlier fault counts for five minutes
    pause = 0.5

    def begin(self, observed):
        self.key = new_customer(observed, "not-written")[1]
        change_database(observed, "billing", "CREATE TRIGGER refused_one BEFORE INSERT ON hold WHEN NEW.workspace = 'not-written' "
                                             "BEGIN SELECT RAISE(ABORT, 'refused'); END")
        super().begin(observed)

    def call(self, observed):
        observed.chat(key=self.key)

    def end(self, observed):
        # Its calls continue: the first one written five seconds after the last failure ends it.
        change_database(observed, "billing", "DROP TRIGGER refused_one")

    def put_back(self, observed):
        super().end(observed)


class LockedDatabase(Calls):
    """another session locks the database for more than a second again and again"""
    alerts = ("LedgerCommitsSlowly",)

    def begin(self, observed):
        super().begin(observed)
        self.locking = threading.Thread(target=self.lock, args=(observed,), daemon=True)
        self.locking.start()

    def lock(self, observed):
        with contextlib.closing(sqlite3.connect(f"{observed.facts['dir']}/billing.db", timeout=20, isolation_level=None)) as database:
            while not self.stop.is_set():
                database.execute("BEGIN IMMEDIATE")
                time.sleep(2)
                database.execute("ROLLBACK")
                time.sleep(0.1)

    def end(self, observed):
        super().end(observed)
        self.locking.join()


class DiskRefusesWrites(Calls):
    """the disk refuses what billing writes"""
    alerts = ("LedgerRefusesCalls",)

    def begin(self, observed):
        self.billing = observed.replace("billing", restore_signals=False)
        limit_files(self.billing.pid, 0)
        super().begin(observed)

    def end(self, observed):
        super().end(observed)
        limit_files(self.billing.pid, resource.RLIM_INFINITY)

    def put_back(self, observed):
        observed.restore("billing", self.billing)


class AuditHead(Fault):
    """the newest hash of billing's audit log is changed; it is put back"""
    alerts = ("AuditCopyIsBroken",)

    def begin(self, observed):
        self.head = change_database(observed, "billing", "SELECT audit_hash FROM audit_head")[0][0]
        change_database(observed, "billing", "UPDATE audit_head SET audit_hash = ?", (bytes(32),))

    def end(self, observed):
        change_database(observed, "billing", "UPDATE audit_head SET audit_hash = ?", (self.head,))


CLOCK = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME && access(getenv("CLOCK_IS_WRONG"), F_OK) == 0) now->tv_sec += 30;
  return result;
}
"""


class ClockStep(Fault):
    """the clock of billing jumps by 30 s; it is put right"""
    alerts = ("LedgerClockStep",)

    def begin(self, observed):
        library = f"{observed.folder}/clock.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=CLOCK.encode(), check=True)
        self.wrong = pathlib.Path(f"{observed.folder}/clock_is_wrong")
        self.billing = observed.replace("billing", env=os.environ | {"LD_PRELOAD": library, "CLOCK_IS_WRONG": str(self.wrong)})
        observed.chat()
        self.wrong.touch()
        observed.chat()

    def end(self, observed):
        self.wrong.unlink()

    def put_back(self, observed):
        observed.restore("billing", self.billing)


FAULTS = (OneWorkspace, BillingStops, LedgerCheckpoints, RollUps, ChangedHead, SomeWorkspaces, LockedDatabase, DiskRefusesWrites, AuditHead,
          ClockStep, Archive, LongOutage, ChangedEntry)
