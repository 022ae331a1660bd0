"""What faults are made of. A fault begins, lasts while its alerts come, and ends; then what it needed is put back."""
import contextlib
import os
import pathlib
import resource
import signal
import socket
import sqlite3
import threading


class Fault:
    alerts = ()
    ends = True  # else with the next restart of the process
    fires_before = False  # its alerts fire since the cluster runs
    patience = 60  # seconds until its alerts fire, and until they end

    @staticmethod
    def possible():
        """Whether this machine has what it needs."""
        return True

    def begin(self, observed):
        raise NotImplementedError

    def end(self, observed):
        pass

    def put_back(self, observed):
        """After the alerts have ended."""


class Stopped(Fault):
    process = ""

    def begin(self, observed):
        self.pid = observed.pid_of(self.process)
        os.kill(self.pid, signal.SIGSTOP)

    def end(self, observed):
        os.kill(self.pid, signal.SIGCONT)


class Calls(Fault):
    """Calls that go on until the alerts have come."""
    pause = 0.05

    def begin(self, observed):
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(observed,), daemon=True)
        self.thread.start()

    def run(self, observed):
        while not self.stop.is_set():
            with contextlib.suppress(OSError):
                self.call(observed)
            self.stop.wait(self.pause)

    def end(self, observed):
        self.stop.set()
        self.thread.join()

    def call(self, observed):
        observed.chat()


def change_database(observed, name, statement, values=()):
    """In the SQLite file of a service, beside the service."""
    with contextlib.closing(sqlite3.connect(f"{observed.facts['dir']}/{name}.db", timeout=20)) as database:
        changed = database.execute(statement, values)
        rows = changed.fetchall()
        database.commit()
        return rows


def new_customer(observed, name, usd="5"):
    """A workspace with credit of its own; its id and the secret of a key."""
    observed.operator("workspace", "create", name, "--id", name)
    observed.operator("credit", "add", usd, "--workspace", name)
    return name, observed.operator("key", "create", "--workspace", name, "--name", name)["secret"]


def limit_files(pid, most):
    """Writes beyond it fail as on a full disk, in a process that ignores SIGXFSZ: Python does, and what it starts with
    restore_signals=False."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


class Pipe:
    """Passes connections to an address on, while flows is set."""

    def __init__(self, target):
        host, _, port = target.rpartition(":")
        self.target, self.flows = (host, int(port)), threading.Event()
        self.flows.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):  # until the listener is closed
            while True:
                client, _ = self.listener.accept()
                try:
                    server = socket.create_connection(self.target)
                except OSError:
                    client.close()
                    continue
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(65536):
                self.flows.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            source.close()
            sink.close()


class FolderInsteadOfFile:
    """A file that cannot be written, also not by root: a folder has its name."""

    def __init__(self, file):
        self.file = pathlib.Path(file)
        self.kept = self.file.with_name(self.file.name + ".kept")
        if self.file.exists():
            self.file.rename(self.kept)
        self.file.mkdir()

    def undo(self):
        self.file.rmdir()
        if self.kept.exists():
            self.kept.rename(self.file)
