"""A ledger on Citus, in a cluster next to the observed one."""
import json
import os
import pathlib
import re
import subprocess

import cluster
from faults.base import Fault


def select(url, statement):
    done = subprocess.run(["psql", "-XAtq", "-d", url, "-c", statement], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class OnCitus(Fault):
    @staticmethod
    def possible():
        return any(pathlib.Path("/usr/share/postgresql").glob("*/extension/citus.control"))

    def begin(self, observed):
        self.targets = pathlib.Path(f"{observed.folder}/targets-citus.json")
        beside = f"{observed.folder}/citus.json"
        self.process = observed.start("citus", str(observed.bin / "tollgate-test-cluster"), "--tcp", "--citus", "--prometheus", beside,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"TOLLGATE_BIN": str(observed.bin)})
        line = self.process.stdout.readline()
        assert line, observed.log("citus")
        config = pathlib.Path(f"{json.loads(line)['dir']}/billing.yaml").read_text()
        self.url = url = re.search(r"postgresql:///billing\?[^\s\"']*", config).group(0)
        subprocess.run([observed.bin / "tollgate", "ledger", "distribute", "--database", url, "--shards", "4", "--apply"], check=True,
                       capture_output=True, env=os.environ | {"XDG_STATE_HOME": observed.folder})
        processes = json.loads(pathlib.Path(beside).read_text())
        billing = next(one for one in processes if one["labels"]["instance"] == "billing")
        self.targets.write_text(json.dumps([billing | {"labels": {"instance": "billing-citus"}}]))
        scraped = 'tollgate_billing_transactions_in_doubt{instance="billing-citus"} == 0'
        cluster.wait_for("a scrape of it", 30, lambda: observed.query(scraped))

    def put_back(self, observed):
        self.targets.write_text("[]")
        self.process.stdin.close()  # stops in an orderly way
        self.process.wait(60)


class LeftPrepared(OnCitus):
    """a transaction that Citus does not know is left prepared on a worker of the ledger"""
    alerts = ("LedgerTransactionsInDoubt",)

    def begin(self, observed):
        super().begin(observed)
        host = select(self.url, "SELECT nodename FROM pg_dist_node WHERE groupid > 0 ORDER BY nodeid LIMIT 1")
        self.worker = f"postgresql:///billing?user=tollgate&host={host}"
        select(self.worker, "BEGIN; LOCK TABLE pg_authid IN ACCESS SHARE MODE; PREPARE TRANSACTION 'left-behind'")

    def end(self, observed):
        select(self.worker, "ROLLBACK PREPARED 'left-behind'")


class OutboxAway(OnCitus):
    """the outbox of audit entries of a ledger on Citus has another name; it gets its own again"""
    alerts = ("AuditOutboxFails",)

    def begin(self, observed):
        super().begin(observed)
        select(self.url, "ALTER TABLE audit_outbox RENAME TO outbox_away")

    def end(self, observed):
        select(self.url, "ALTER TABLE outbox_away RENAME TO audit_outbox")


FAULTS = (LeftPrepared, OutboxAway)
