"""The network of the pods: a namespace each on one bridge, names of Services from a DNS server, and the NetworkPolicies of
the chart as packet filters that count what they let through and remember what they drop."""
import ipaddress
import json
import socket
import struct
import subprocess
import threading

NODE = "10.77.0.1"


def run(*command, stdin=None):
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def selects(selector, labels):
    """Whether a label selector takes these labels; the chart uses matchLabels only."""
    if set(selector) - {"matchLabels"}:
        raise ValueError(f"not understood: {selector}")
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


class Names:
    """A DNS server: the A records of Services. Names have no other records."""

    def __init__(self, lookup):
        self.lookup = lookup
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((NODE, 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            query, client = self.socket.recvfrom(512)
            try:
                self.socket.sendto(self.answer(query), client)
            except (IndexError, struct.error, UnicodeDecodeError):
                continue  # not a query

    def answer(self, query):
        labels, place = [], 12
        while query[place]:
            labels.append(query[place + 1:place + 1 + query[place]].decode())
            place += 1 + query[place]
        question = query[12:place + 5]
        kind = struct.unpack("!H", query[place + 1:place + 3])[0]
        addresses = self.lookup(".".join(labels))
        code = 3 if addresses is None else 0  # no such name
        records = addresses if addresses and kind == 1 else []
        head = query[:2] + struct.pack("!HHHHH", 0x8580 | code, 1, len(records), 0, 0)
        return head + question + b"".join(
            b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 1, 4) + socket.inet_aton(one) for one in records)


class Network:
    def __init__(self):
        run("mkdir", "-p", "/run/netns")
        run("mount", "-t", "tmpfs", "netns", "/run/netns")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "pods", "type", "bridge")
        run("ip", "address", "add", f"{NODE}/16", "dev", "pods")
        run("ip", "link", "set", "pods", "up")
        self.count = 0

    def join(self, name):
        """Creates the network namespace of a pod; returns its address."""
        self.count += 1
        address = f"10.77.1.{self.count}"
        run("ip", "netns", "add", name)
        run("ip", "link", "add", f"pod{self.count}", "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", f"pod{self.count}", "master", "pods", "up")
        for command in (["link", "set", "lo", "up"], ["address", "add", f"{address}/16", "dev", "eth0"],
                        ["link", "set", "eth0", "up"], ["route", "add", "default", "via", NODE]):
            run("ip", "-n", name, *command)
        return address

    def restrict(self, pod, policies, pods):
        """Installs the policies that select a pod, as a network plugin does. Connections of the node (probes) pass."""
        mine = [one["spec"] for one in policies if selects(one["spec"]["podSelector"], pod.labels)]
        lines = ["table inet pod {",
                 "set dropped { type ipv4_addr . ipv4_addr . inet_service; size 1024; flags dynamic; }"]
        for direction, hook, peers, address in (("Ingress", "input", "from", "saddr"), ("Egress", "output", "to", "daddr")):
            lines += [f"chain {hook} {{ type filter hook {hook} priority 0; policy accept;",
                      f"{'iif' if hook == 'input' else 'oif'} lo accept", "ct state established,related accept"]
            if hook == "input":
                lines.append(f"ip saddr {NODE} accept")
            held = [one for one in mine if direction in one["policyTypes"]]
            for policy in held:
                for rule in policy.get(direction.lower(), []):
                    lines += self.rules(rule, rule.get(peers), address, pods)
            if held:
                lines += ["tcp flags syn / fin,syn,rst,ack add @dropped { ip saddr . ip daddr . tcp dport } drop", "drop"]
            lines.append("}")
        lines.append("}")
        run("ip", "netns", "exec", pod.name, "nft", "-f", "-", stdin="\n".join(lines))

    def rules(self, rule, peers, address, pods):
        """The lines that admit a rule's peers; without peers, everyone."""
        for peer in peers or [None]:
            if peer is None:
                sources, comment = "", "anyone"
            elif "ipBlock" in peer:
                ipaddress.ip_network(peer["ipBlock"]["cidr"])
                sources, comment = f"ip {address} {peer['ipBlock']['cidr']}", "block"
            elif "namespaceSelector" in peer:
                continue  # this test has no pods of other namespaces
            else:
                there = [one for one in pods if selects(peer["podSelector"], one.labels)]
                if not there:
                    continue
                sources = f"ip {address} {{ {', '.join(one.address for one in there)} }}"
                comment = there[0].component
            for port in rule.get("ports") or [{"protocol": "TCP"}]:
                protocol = port["protocol"].lower()
                to = f"{protocol} dport {port['port']}" if "port" in port else f"meta l4proto {protocol}"
                yield f"{sources} {to} counter accept comment \"{comment} {port.get('port', 'all')}\""

    def table(self, pod):
        return json.loads(run("ip", "netns", "exec", pod.name, "nft", "-j", "list", "table", "inet", "pod"))["nftables"]

    def used(self, pod):
        """{(peer, port): packets} of the rules that let connections in."""
        found = {}
        for entry in self.table(pod):
            rule = entry.get("rule", {})
            if rule.get("chain") == "input" and "comment" in rule:
                peer, port = rule["comment"].split(" ")
                counter = next(one["counter"] for one in rule["expr"] if "counter" in one)
                found[peer, port] = found.get((peer, port), 0) + counter["packets"]
        return found

    def dropped(self, pod):
        """{(from, to, port)} of the connections that the policies of a pod refused."""
        found = set()
        for entry in self.table(pod):
            for one in entry.get("set", {}).get("elem", []):
                one = one.get("elem", one)
                found.add(tuple(one.get("val", one)["concat"]))
        return found
