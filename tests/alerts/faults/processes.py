"""Processes, their certificates, logs and limits."""
import fcntl
import math
import os
import pathlib
import subprocess

from faults.base import Calls, Fault, Stopped


class CatalogStops(Stopped):
    """the catalog process hangs"""
    alerts = ("ProcessDown",)
    process = "catalog"


class WrongCaller(Fault):
    """the certificate of a gateway is used for an admin call"""
    alerts = ("CallsRefusedBetweenProcesses",)

    def begin(self, observed):
        observed.operator("workspace", "list", certificate="gateway")


class OwnCertificate(Fault):
    """a certificate for calls has 5 days left; it is renewed"""
    alerts = ("CertificateExpires",)

    def begin(self, observed):
        folder = f"{observed.folder}/tls"
        name = pathlib.Path(f"{observed.folder}/name.cnf")
        name.write_text("subjectAltName=URI:spiffe://tollgate/svc/catalog\n")
        observed.openssl("req", "-new", "-key", f"{folder}/catalog/private_key.pem", "-subj", "/CN=catalog", "-out", "short.csr")
        observed.openssl("x509", "-req", "-in", "short.csr", "-CA", f"{folder}/authority.pem", "-CAkey", f"{folder}/authority.key",
                         "-set_serial", "4711", "-days", "5", "-extfile", str(name), "-out", "short.pem")
        os.replace(f"{observed.folder}/short.pem", f"{folder}/catalog/certificate.pem")

    def end(self, observed):
        observed.renew_certificates()


class Restarts(Calls):
    """a process is killed and started again and again"""
    alerts = ("ProcessRestarts",)
    pause = 1.2  # its start time has a resolution of a second and is scraped once a second

    def call(self, observed):
        observed.tell("kill catalog")
        observed.tell("start catalog")


class Replaced(Fault):
    """A process that runs differently from the cluster's own."""
    process = "catalog"

    def run(self, observed):
        """The process, by observed.replace()."""
        raise NotImplementedError

    def begin(self, observed):
        self.running = self.run(observed)

    def end(self, observed):
        observed.restore(self.process, self.running)


class FewFiles(Replaced):
    """a process has almost reached its limit of open files"""
    alerts = ("ProcessAlmostOutOfFiles",)

    def run(self, observed):
        used = len(os.listdir(f"/proc/{observed.pid_of(self.process)}/fd"))
        return observed.replace(self.process, prefix=("prlimit", f"--nofile={math.floor(used / 0.85)}"))


class OldVersion(Replaced):
    """a process is of another version"""
    alerts = ("VersionsDiffer",)

    def run(self, observed):
        version = observed.query("tollgate_build_info")[0]["metric"]["version"].encode()
        program = pathlib.Path(f"{observed.folder}/tollgate-catalog")
        other = version[:-1] + b"8" if version[-1:] != b"8" else version[:-1] + b"7"
        program.write_bytes((observed.bin / program.name).read_bytes().replace(version + b"\0", other + b"\0"))
        program.chmod(0o755)
        return observed.replace(self.process, binary=program)


class LogIsNotRead(Replaced):
    """the log pipe of a busy gateway is not read"""
    alerts = ("LogLinesDropped",)
    process = "gateway"

    def run(self, observed):
        running = observed.replace(self.process, lambda text: text.replace("host:\n", "host:\n  log_queue_bytes: 65536\n"),
                                   stderr=subprocess.PIPE)
        fcntl.fcntl(running.stderr, fcntl.F_SETPIPE_SZ, 4096)
        for _ in range(300):
            observed.call("GET", "/v1/models")
        return running


FAULTS = (CatalogStops, WrongCaller, OwnCertificate, Restarts, FewFiles, OldVersion, LogIsNotRead)
