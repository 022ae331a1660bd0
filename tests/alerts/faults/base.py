"""Base classes of faults. A fault begins, lasts until its alerts fire, ends, and restores what it changed."""
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
    ends = True  # False: its alerts end with the next restart of the process
    fires_before = False  # True: its alerts fire from the start of the cluster
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
    """Calls that continue until the alerts have fired."""
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
    """Changes the SQLite file of a service while the service runs."""
    with contextlib.closing(sqlite3.connect(f"{observed.facts['dir']}/{name}.db", timeout=20)) as database:
        changed = database.execute(statement, values)
        rows = changed.fetchall()
        database.commit()
        return rows


def new_customer(observed, name, usd="5"):
    """Creates a workspace with its own credit; returns its id and the secret of a key."""
    observed.operator("workspace", "create", name, "--id", name)
    observed.operator("credit", "add", usd, "--workspace", name)
    return name, observed.operator("key", "create", "--workspace", name, "--name", name)["secret"]


def limit_files(pid, most):
    """Sets a file size limit: writes beyond it fail as on a full disk, in a process that ignores SIGXFSZ: Python does, and processes that it starts with
    restore_signals=False."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


class Pipe:
    """Forwards connections to an address while `flows` is set."""

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
    """A file that even root cannot write: a folder has its name."""

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
