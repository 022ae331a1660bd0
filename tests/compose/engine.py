"""The part of `docker compose` that scripts of deploy/ use, for containers of machine.py: `environment(machine)` has a PATH whose `docker`
asks this process."""
import json
import os
import socketserver
import subprocess
import threading

OPTIONS = {"--rm", "--no-deps", "-T", "-d", "--wait"}
CLIENT = """#!/usr/bin/python3
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as there:
    there.connect(os.environ["TOLLGATE_TEST_ENGINE"])
    there.sendall(json.dumps(sys.argv[1:]).encode() + b"\\n")
    answer = json.loads(there.makefile().readline())
sys.stdout.write(answer["out"])
sys.stderr.write(answer["error"])
sys.exit(answer["code"])
"""


class Engine:
    def __init__(self, machine):
        self.machine, self.runs = machine, 0

    def do(self, arguments):
        """Exit code, standard output and standard error of a command."""
        if arguments[:1] != ["compose"]:
            raise ValueError(f"not understood: {arguments}")
        command, *rest = arguments[1:]
        while rest and rest[0].startswith("-"):
            if rest[0] not in OPTIONS:
                raise ValueError(f"not understood: {arguments}")
            rest.pop(0)
        return getattr(self, command)(*rest)

    def stop(self, *names):
        for name in names:
            if self.machine.containers[name].runs():
                self.machine.containers[name].stop()
        return 0, "", ""

    def up(self, *names):
        for name in names:
            if not self.machine.containers[name].runs():
                self.machine.containers[name].start()
        self.machine.wait_healthy(names, 120)
        return 0, "", ""

    def exec(self, name, *command):
        done = self.machine.containers[name].execute(*command, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def run(self, name, *command):
        """A container of the service in addition to its own one, until its command ends."""
        self.runs += 1
        one = self.machine.another(name, f"{name}-run-{self.runs}", list(command))
        one.start(subprocess.PIPE)
        out, error = one.process.communicate(timeout=300)
        return one.process.returncode, out.decode(), error.decode()


def environment(machine, folder):
    """Environment for a script that calls docker."""
    engine, path = Engine(machine), f"{folder}/engine"

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            arguments = json.loads(self.rfile.readline())
            try:
                code, out, error = engine.do(arguments)
            except (AssertionError, OSError, KeyError, TypeError, ValueError, AttributeError, subprocess.SubprocessError) as failed:
                code, out, error = 125, "", f"{arguments}: {failed}\n"
            self.wfile.write(json.dumps({"code": code, "out": out, "error": error}).encode() + b"\n")

    os.makedirs(path)
    with open(f"{path}/docker", "w", encoding="utf-8") as file:
        file.write(CLIENT)
    os.chmod(file.name, 0o755)
    server = socketserver.ThreadingUnixStreamServer(f"{path}/socket", Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "TOLLGATE_TEST_ENGINE": f"{path}/socket"}
