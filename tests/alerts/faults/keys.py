"""Keys, people and the audit log: the data of auth."""
import os
import re
import signal
import time

from faults.base import Calls, Fault, FolderInsteadOfFile, Pipe, Stopped, change_database
from faults.edge import connect


class GatewayStops(Stopped):
    """a gateway stops while a key is made"""
    alerts = ("KeyChangesActLate",)
    process = "gateway"

    def begin(self, observed):
        super().begin(observed)
        observed.operator("key", "create", "--workspace", observed.facts["workspaces"]["good"], "--name", "late")
        time.sleep(2)  # longer than the bound
        os.kill(self.pid, signal.SIGCONT)


class MailServerDown(Fault):
    """the mail server is down"""
    alerts = ("MailsWait",)
    ends = False

    def begin(self, observed):
        observed.operator("user", "invite", "ann@example.test", "-w", observed.facts["workspaces"]["good"], "--role", "owner")


class CanaryKey(Calls):
    """a key with the label of a canary is used"""
    alerts = ("CanaryKeyUsed",)
    pause = 1

    def begin(self, observed):
        made = observed.operator("key", "create", "--workspace", observed.facts["workspaces"]["good"], "--name", "canary",
                                 "--label", "tollgate-canary=true")
        self.secret = made["secret"]
        super().begin(observed)

    def call(self, observed):
        observed.chat(key=self.secret)


class AuditCheckpoints(Fault):
    """the file of the audit log's checkpoints cannot be written"""
    alerts = ("AuditCheckpointsFail",)

    def begin(self, observed):
        self.file = FolderInsteadOfFile(f"{observed.folder}/audit.checkpoints")
        # A checkpoint is written only after an entry.
        observed.operator("key", "create", "--workspace", observed.facts["workspaces"]["good"], "--name", "audited")

    def end(self, observed):
        self.file.undo()


class KeyUses(Calls):
    """the database of auth refuses the rows of key uses"""
    alerts = ("KeyUsesDropped",)

    def begin(self, observed):
        change_database(observed, "auth", "CREATE TRIGGER refused BEFORE UPDATE OF last_used_us ON virtual_key "
                                          "BEGIN SELECT RAISE(ABORT, 'refused'); END")
        super().begin(observed)

    def end(self, observed):
        super().end(observed)
        change_database(observed, "auth", "DROP TRIGGER refused")


class KeyDatabase(Fault):
    """auth cannot read the head of its database"""
    alerts = ("KeyDatabaseUnreachable",)

    def begin(self, observed):
        change_database(observed, "auth", "ALTER TABLE auth_head RENAME TO hidden")

    def end(self, observed):
        change_database(observed, "auth", "ALTER TABLE hidden RENAME TO auth_head")


class GatewayWithoutAuth(Fault):
    """no message of auth reaches a gateway while a key is created"""
    alerts = ("KeyChangesMissing",)

    def begin(self, observed):
        config = observed.config("gateway")
        target = re.search(r'\n  auth: "([^"]*)"', config).group(1)
        self.pipe = Pipe(target)
        self.running = observed.replace("gateway", lambda text: text.replace(f'  auth: "{target}"', f'  auth: "{self.pipe.address}"'))
        self.pipe.flows.clear()
        observed.operator("key", "create", "--workspace", observed.facts["workspaces"]["good"], "--name", "missing")

    def end(self, observed):
        self.pipe.flows.set()

    def put_back(self, observed):
        observed.restore("gateway", self.running)
        self.pipe.listener.close()


class MadeUpKeys(Calls):
    """more made-up keys come from one address than are looked up, while auth hangs"""
    alerts = ("GatewayUnknownKeys",)

    def begin(self, observed):
        self.running = observed.replace("gateway", lambda text: text.replace("  max_connections: 200\n", "  legacy_key_prefixes: [old-]\n"))
        self.open = [connect(observed) for _ in range(300)]  # 200 look-ups at once are admitted
        self.number = 0
        self.auth = observed.pid_of("auth")
        os.kill(self.auth, signal.SIGSTOP)
        time.sleep(4)  # after 3 s without auth the gateway does not trust its filter of keys
        super().begin(observed)

    def call(self, observed):
        body = b'{"model":"sim/model","messages":[{"role":"user","content":"Hello"}]}'
        for connection in self.open:
            self.number += 1
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                               b"Authorization: Bearer old-%040d\r\nContent-Length: %d\r\n\r\n%s" % (self.number, len(body), body))
        for connection in self.open:
            connection.recv(4000)

    def end(self, observed):
        os.kill(self.auth, signal.SIGCONT)
        super().end(observed)

    def put_back(self, observed):
        for connection in self.open:
            connection.close()
        observed.restore("gateway", self.running)


FAULTS = (GatewayStops, MailServerDown, CanaryKey, AuditCheckpoints, KeyUses, KeyDatabase, GatewayWithoutAuth, MadeUpKeys)
