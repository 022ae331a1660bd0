"""Ports reserved for a test."""
import random
import socket


def free_ports(count):
    """Ports below the range of outgoing connections, which could take a port before its process listens."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="utf-8") as file:
        end = int(file.read().split()[0])
    held, generator = [], random.SystemRandom()
    while len(held) < count:
        one = socket.socket()
        try:
            one.bind(("0.0.0.0", generator.randrange(12_000, max(end, 24_000))))
            held.append(one)
        except OSError:
            one.close()
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports
