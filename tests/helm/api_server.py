"""A private Kubernetes: real etcd, API server, controllers and scheduler, and nodes of kwok, which run no
containers but say so of every pod."""
import glob
import json
import os
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import yaml

import chart
from ports import free_ports

PART = os.path.join(chart.PARTS, "kubernetes-v1.36.3")
TOKEN = "the-token-of-the-test"


class ApiError(Exception):
    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message


def wait_for(what, check, seconds=120):
    deadline = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.2)


class ApiServer:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tollgate-kubernetes-")
        self.processes, self.context = [], ssl._create_unverified_context()
        etcd, peer, self.port, kwok = free_ports(4)
        self.url = f"https://127.0.0.1:{self.port}"
        self.write_files()
        self.start("etcd", "--data-dir", self.path("etcd"), "--listen-client-urls", f"http://127.0.0.1:{etcd}",
                   "--advertise-client-urls", f"http://127.0.0.1:{etcd}", "--listen-peer-urls", f"http://127.0.0.1:{peer}",
                   "--unsafe-no-fsync")
        self.start("kube-apiserver", "--etcd-servers", f"http://127.0.0.1:{etcd}", "--secure-port", str(self.port),
                   "--bind-address", "127.0.0.1", "--cert-dir", self.path("certificates"), "--token-auth-file", self.path("tokens"),
                   "--service-account-issuer", "https://tests", "--service-account-key-file", self.path("accounts.pub"),
                   "--service-account-signing-key-file", self.path("accounts.key"), "--authorization-mode", "RBAC",
                   "--service-cluster-ip-range", "10.96.0.0/16")
        wait_for("the API server", self.ready)
        self.start("kube-controller-manager", "--kubeconfig", self.path("kubeconfig"), "--leader-elect=false", "--secure-port", "0",
                   "--service-account-private-key-file", self.path("accounts.key"), "--root-ca-file", self.path("certificates/apiserver.crt"),
                   "--horizontal-pod-autoscaler-sync-period", "2s")
        self.start("kube-scheduler", "--kubeconfig", self.path("kubeconfig"), "--leader-elect=false", "--secure-port", "0")
        self.start("kwok", "--kubeconfig", self.path("kubeconfig"), "--config", self.path("stages.yaml"), "--manage-all-nodes=true", "--node-lease-duration-seconds", "40",
                   "--server-address", f"127.0.0.1:{kwok}")
        wait_for("the default namespace's account", lambda: self.find("/api/v1/namespaces/default/serviceaccounts/default"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def write_files(self):
        self.write("tokens", f'{TOKEN},test,test,"system:masters"\n')
        for command in (["genpkey", "-algorithm", "RSA", "-out", self.path("accounts.key")],
                        ["pkey", "-in", self.path("accounts.key"), "-pubout", "-out", self.path("accounts.pub")]):
            subprocess.run(["openssl", *command], check=True, capture_output=True)
        self.write("kubeconfig", json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.url, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "test", "user": {"token": TOKEN}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}))
        stages = []
        for path in sorted(glob.glob(os.path.join(PART, "stages", "*.yaml"))):
            with open(path, encoding="utf-8") as file:
                stages += [one for one in yaml.safe_load_all(file) if one["kind"] == "Stage"]
        # A pod of helm test also ends.
        [ends] = [one for one in stages if one["metadata"]["name"] == "pod-complete"]
        test = json.loads(json.dumps(ends))
        test["metadata"]["name"] = "test-complete"
        test["spec"]["selector"]["matchExpressions"][-1] = {
            "key": '.metadata.labels["app.kubernetes.io/component"]', "operator": "In", "values": ["test"]}
        self.write("stages.yaml", yaml.safe_dump_all([*stages, test]))

    def start(self, program, *arguments):
        with open(self.path(program + ".log"), "w", encoding="utf-8") as log:
            self.processes.append(subprocess.Popen([os.path.join(PART, program), *arguments], stdout=log, stderr=log,
                                                   cwd=self.folder))

    def stop(self, keep_logs):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if not keep_logs:
            shutil.rmtree(self.folder)

    def ready(self):
        try:
            return self.call("GET", "/readyz", raw=True)
        except (OSError, ApiError):
            assert all(process.poll() is None for process in self.processes), f"a process has ended; see {self.folder}"
            return None

    def call(self, method, path, body=None, raw=False, kind="application/json"):
        request = urllib.request.Request(self.url + path, method=method, data=json.dumps(body).encode() if body is not None else None,
                                         headers={"Authorization": "Bearer " + TOKEN, "Content-Type": kind})
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=60) as response:
                text = response.read()
                return text if raw else json.loads(text)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            try:
                message = json.loads(text)["message"]
            except ValueError:
                message = text
            raise ApiError(error.code, message) from None

    def find(self, path):
        try:
            return self.call("GET", path)
        except ApiError as error:
            if error.status in (404, 429, 503):  # not there, or not yet
                return None
            raise

    def items(self, path):
        return self.call("GET", path)["items"]

    def prepare(self, nodes=6, volumes=40):
        """Nodes in three zones, disks, a namespace that admits restricted pods only, and custom resources."""
        for number in range(nodes):
            name = f"node-{number}"
            self.call("POST", "/api/v1/nodes", {
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}},
                "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "200"}, "capacity": {"cpu": "64", "memory": "256Gi", "pods": "200"}}})
        for number in range(volumes):
            self.call("POST", "/api/v1/persistentvolumes", {
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"disk-{number}"},
                "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "disks",
                         "hostPath": {"path": f"/disks/{number}"}}})
        self.call("POST", "/apis/storage.k8s.io/v1/storageclasses", {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "kubernetes.io/no-provisioner",
            "metadata": {"name": "disks", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}})
        self.call("POST", "/api/v1/namespaces", {
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": chart.NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
        for path in glob.glob(os.path.join(chart.PART, "schemas", "crds", "*.yaml")):
            with open(path, encoding="utf-8") as file:
                for document in yaml.load_all(file, yaml.CSafeLoader):
                    if document and document["kind"] == "CustomResourceDefinition":
                        document.pop("status", None)
                        self.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", document)
                        self.wait_established(document)

    def wait_established(self, document):
        spec = document["spec"]
        version = next(one["name"] for one in spec["versions"] if one["served"])
        wait_for(spec["names"]["kind"], lambda: self.find(f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"))

    def collections(self):
        """{(apiVersion, kind): path of the collection}."""
        found = {}
        versions = ["v1"] + [one["groupVersion"] for group in self.call("GET", "/apis")["groups"] for one in group["versions"]]
        for version in versions:
            base = "/api/v1" if version == "v1" else f"/apis/{version}"
            for one in self.call("GET", base)["resources"]:
                if "/" not in one["name"] and one["namespaced"]:
                    found[version, one["kind"]] = f"{base}/namespaces/{chart.NAMESPACE}/{one['name']}"
        return found
