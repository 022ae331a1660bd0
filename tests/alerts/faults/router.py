"""The router's files, its disk, and its calls to the ledger."""
import contextlib
import http.client
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import threading

import cluster
from faults.base import Fault, Pipe, Stopped, change_database, limit_files, new_customer


def start_answer(observed, key=None, bound=None, **script):
    """A running streamed answer; bound: its token limit, for the hold."""
    thread = threading.Thread(target=answer, args=(observed, key, script, bound), daemon=True)
    thread.start()
    router = observed.processes()["inference-router"]
    cluster.wait_for("a running answer", 15, lambda: "\ntollgate_router_running_requests 1\n" in observed.metrics_of(router))
    return thread


def answer(observed, key, script, bound):
    more = {"max_tokens": bound} if bound else {}
    with contextlib.suppress(OSError, http.client.HTTPException):  # the fault may break the connection
        observed.chat(script, key, stream=True, **more)


class RouterStart(Fault):
    """The router is killed, its files are changed, and it starts again. The alert ends with the next start."""

    def damage(self, folder):
        raise NotImplementedError

    def begin(self, observed):
        running = start_answer(observed, tokens=200, token_ms=100)
        observed.tell("kill inference-router")
        running.join()
        self.damage(pathlib.Path(observed.facts["dir"]) / "router")
        observed.tell("start inference-router")

    def end(self, observed):
        observed.tell("kill inference-router")
        observed.tell("start inference-router")


class OutboxIsGone(RouterStart):
    """the outbox is missing when the router starts"""
    alerts = ("RouterLostSettlementFile",)

    def damage(self, folder):
        (folder / "outbox").unlink()


class OutboxIsDamaged(RouterStart):
    """bytes of the outbox are not valid records when the router starts"""
    alerts = ("RouterQuarantinedSettlements",)

    def damage(self, folder):
        with open(folder / "outbox", "ab") as file:
            file.write(b"damaged" * 100)


class JournalIsDamaged(RouterStart):
    """the slot of a running request is damaged in the journal when the router starts"""
    alerts = ("RouterDropsJournal",)

    def damage(self, folder):
        content = bytearray((folder / "inflight").read_bytes())
        at = content.index(b"sim/model")
        content[at] ^= 0x10
        (folder / "inflight").write_bytes(content)


class BillingHangs(Fault):
    """billing hangs while an answer uses its hold up"""
    alerts = ("RouterCutsAnswers",)

    def begin(self, observed):
        self.running = start_answer(observed, tokens=20_000, token_ms=1)
        self.pid = observed.pid_of("billing")
        os.kill(self.pid, signal.SIGSTOP)

    def end(self, observed):
        os.kill(self.pid, signal.SIGCONT)
        self.running.join()


class CutOff(Fault):
    """The connection of a router to billing can be cut. Billing runs with another configuration meanwhile."""

    def change_billing(self, text):
        raise NotImplementedError

    def begin(self, observed):
        target = re.search(r'\n  billing: "([^"]*)"', observed.config("inference-router")).group(1)
        self.pipe = Pipe(target)
        self.running = {
            "billing": observed.replace("billing", self.change_billing),
            "inference-router": observed.replace("inference-router", lambda text: text.replace(
                f'  billing: "{target}"', f'  billing: "{self.pipe.address}"')),
        }

    def cut(self):
        self.pipe.flows.clear()

    def take_credit(self, observed, workspace, free, patience):
        """Takes all credit, then reconnects the router to billing."""
        wallet = f"SELECT paid + granted FROM wallet WHERE workspace = ? AND {free}"
        left = cluster.wait_for(free, patience, lambda: change_database(observed, "billing", wallet, (workspace,)))[0][0]
        observed.operator("adjustment", "create", "debit", f"{left / 1e9:.9f}", "--workspace", workspace, "--reason", "test")
        self.pipe.flows.set()

    def put_back(self, observed):
        for name, running in self.running.items():
            observed.restore(name, running)
        self.pipe.listener.close()


class CutFromBilling(CutOff):
    """a router does not reach billing for longer than its holds last, and the credit is taken meanwhile"""
    alerts = ("RouterLosesHolds", "LedgerOverrun")

    def change_billing(self, text):
        return text.replace("hold_ttl_seconds: 60", "hold_ttl_seconds: 6")

    def begin(self, observed):
        super().begin(observed)
        workspace, key = new_customer(observed, "cut-from-billing")
        start_answer(observed, key, tokens=400, token_ms=100)
        self.cut()
        self.take_credit(observed, workspace, "open_holds = 0", 40)


class HoldIsGone(Fault):
    """the ledger has lost the hold of a running answer; it is put back"""
    alerts = ("RouterSettlementsRefused", "LedgerDeadLetters")

    def begin(self, observed):
        running = start_answer(observed, tokens=20, token_ms=100)
        where = "FROM hold WHERE state = 1 AND workspace = ?"
        workspace = (observed.facts["workspaces"]["good"],)
        self.row = change_database(observed, "billing", f"SELECT * {where}", workspace)[0]
        change_database(observed, "billing", f"DELETE {where}", workspace)
        running.join()

    def end(self, observed):
        change_database(observed, "billing", f"INSERT INTO hold VALUES ({', '.join('?' * len(self.row))})", self.row)
        for letter in observed.operator("deadletter", "list")["dead_letters"]:
            observed.operator("deadletter", "retry", letter["request_id"], "--workspace", observed.facts["workspaces"]["good"],
                              "--reason", "the hold is back")


class FullDisk(Fault):
    """the disk of a router is full"""
    alerts = ("DiskFills", "DiskFull")

    def begin(self, observed):
        self.folder = pathlib.Path(observed.folder) / "disk"
        self.folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tollgate-observed", self.folder], check=True)
        before = f"{observed.facts['dir']}/router"
        shutil.copytree(before, self.folder / "router")
        self.router = observed.replace("inference-router", lambda text: text.replace(f"data_dir: {before}", f"data_dir: {self.folder}/router"))
        with open(self.folder / "fill", "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    def end(self, observed):
        (self.folder / "fill").unlink()

    def put_back(self, observed):
        observed.restore("inference-router", self.router)
        subprocess.run(["umount", self.folder], check=True)


class NoRecord(Stopped):
    """the disk of a router refuses what it writes, and billing hangs while an answer ends"""
    alerts = ("AnswersNotRecorded",)
    process = "billing"

    def begin(self, observed):
        self.router = observed.replace("inference-router", restore_signals=False)
        running = start_answer(observed, tokens=30, token_ms=100)
        limit_files(self.router.pid, 0)
        super().begin(observed)
        running.join()

    def end(self, observed):
        limit_files(self.router.pid, resource.RLIM_INFINITY)
        super().end(observed)

    def put_back(self, observed):
        observed.restore("inference-router", self.router)


FAULTS = (OutboxIsGone, OutboxIsDamaged, JournalIsDamaged, BillingHangs, CutFromBilling, HoldIsGone, FullDisk, NoRecord)
