"""A sandbox for third-party programs: they get the settings of docs/clients.md, a network that this machine
does not have to leave, a time limit, and must leave no process."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))
from facts import ENGINE, FACTS, MODEL, ROOT, key  # noqa: E402,F401

PACKAGES = pathlib.Path(os.environ["TOLLGATE_PACKAGES"])
TREE = pathlib.Path(os.environ["TOLLGATE_DOCS"]).parent
PAGE = (TREE / "docs/clients.md").read_text(encoding="utf-8")
README = (TREE / "README.md").read_text(encoding="utf-8")
RECIPES = {name: (language, code) for language, name, code in
           re.findall(r"^```(\w+) recipe=([\w-]+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)}


class Proxy:
    """An HTTP proxy for every host except this one. It records the requests and refuses them."""

    def __init__(self):
        self.asked = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self.asked.append(connection.recv(4096).split(b"\r\n")[0].decode(errors="replace"))
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")

    def close(self):
        self._socket.close()


class Recorder:
    """A proxy in front of Tollgate: forwards bytes and records what the client sends."""

    def __init__(self):
        self._sent = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", FACTS["port"]))
            self._sent.append(bytearray())
            threading.Thread(target=self._pass_on, args=(client, server, self._sent[-1]), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(server, client, bytearray()), daemon=True).start()

    @staticmethod
    def _pass_on(source, target, kept):
        try:
            while data := source.recv(65536):
                kept += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def bodies(self):
        """The JSON bodies of requests whose head says how long they are."""
        for sent in map(bytes, self._sent):
            while sent:
                head, _, sent = sent.partition(b"\r\n\r\n")
                length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
                size = int(length[1]) if length else 0
                if size:
                    yield json.loads(sent[:size])
                sent = sent[size:]

    def close(self):
        self._socket.close()


class Done:
    """How a program ended: exit code (None: it ran into the limit), standard output, standard error, seconds."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def events(self):
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]

    def __str__(self):
        return f"exit code {self.code} after {self.seconds:.1f} s\n{self.out[-4000:]}\n{self.err[-4000:]}"


class Sandbox:
    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="tollgate-agent-", ignore_cleanup_errors=True)
        self.home = pathlib.Path(self._folder.name) / "home"
        self.work = self.home / "work"
        self.work.mkdir(parents=True)
        self.proxy = Proxy()
        self.url = ROOT

    def environment(self, key_name):
        return {
            "PATH": f"{PACKAGES}/agents/bin:{PACKAGES}/aider/venv/bin:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home), "TMPDIR": str(self.home), "LANG": "C.UTF-8", "TERM": "dumb",
            "TOLLGATE_URL": self.url, "TOLLGATE_API_KEY": key(key_name), "TOLLGATE_MODEL": MODEL,
            "HTTP_PROXY": self.proxy.url, "HTTPS_PROXY": self.proxy.url, "ALL_PROXY": self.proxy.url,
            "http_proxy": self.proxy.url, "https_proxy": self.proxy.url, "all_proxy": self.proxy.url,
            "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost",
            # opencode tries to install a package for plugins at every start, and works without it.
            "npm_config_registry": "http://127.0.0.1:9", "npm_config_fetch_retries": "0",
            # The tools of the agents run without asking; this is a sandbox.
            "IS_SANDBOX": "1",
        }

    def run(self, *command, key_name="good", seconds=200):
        """Runs a command; processes that it leaves behind are killed and fail the test."""
        started = time.monotonic()
        process = subprocess.Popen(command, cwd=self.work, env=self.environment(key_name), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                   start_new_session=True)
        code = None
        try:
            out, err = process.communicate(timeout=seconds)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        done = Done(code, out, err, time.monotonic() - started)
        left = self._left()
        assert not left, f"{command[:3]} left processes behind: {left}"
        return done

    def shell(self, script, **options):
        return self.run("bash", "-euc", script, **options)

    def _processes(self):
        mark = f"HOME={self.home}".encode()
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    yield int(folder.name), (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue

    def _left(self):
        """Processes of this sandbox that do not end by themselves within half a minute; they are ended."""
        deadline = time.monotonic() + 30
        while left := list(self._processes()):
            if time.monotonic() > deadline:
                for pid, _ in left:
                    os.kill(pid, signal.SIGKILL)
                return left
            time.sleep(0.02)
        return []

    def close(self):
        self.proxy.close()
        self._folder.cleanup()


def recipe(name):
    return RECIPES[name][1]


def _post(path, value):
    request = urllib.request.Request(ENGINE + path, json.dumps(value).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def queue(*scripts):
    """Scripts for the engine's answers to the next requests that offer tools; returns how many were not used before."""
    return _post("/sim/queue", scripts)["left"]


def default_script(**script):
    _post("/sim/script", script)


def engine_requests():
    with urllib.request.urlopen(f"{ENGINE}/sim/bodies") as answer:
        return json.load(answer)["requests"]


def engine_bodies():
    return [json.loads(request["body"]) for request in engine_requests()]
