#!/usr/bin/env python3
"""Searches the logs that all tests left in a folder (TOLLGATE_TEST_LOGS) for secrets and prompts.

scan_logs.py FOLDER: prints each finding; 1 if there is one, or if there are no logs.
"""
import os
import re
import sys

# What secrets of the product look like, and what the tests use as secrets and prompts.
PATTERNS = {
    "virtual key": rb"sk-[a-z0-9]+-[0-9A-Za-z]{61}",
    "access token": rb"tgp_[0-9A-Za-z]{20,}",
    "webhook secret": rb"whsec_[0-9A-Za-z]{20,}",
    "key of Stripe": rb"[sr]k_(?:test|live)_[0-9A-Za-z]{12,}",
    "Authorization": rb"Bearer [0-9A-Za-z_.~+/-]{16,}",
    "private key": rb"-----BEGIN [A-Z ]*PRIVATE KEY",
    "password in a URL": rb"[a-z]+://[^/@ \"]*:[^/@ \"]+@",
    "pepper": rb"a pepper for tests that|p{32}",
    "login token": rb"login-token-for-tests",
    "password": rb"correct horse battery",
    "request body": rb'x_sim|hello there|\\"(?:role|messages|prompt)\\"',
    "canary": rb"(?i)canary[a-z0-9]{8}",
}


def findings(text):
    """(kind, what stands around it) of the first match of each pattern."""
    for kind, pattern in PATTERNS.items():
        found = re.search(pattern, text)
        if found:
            around = text[max(0, found.start() - 200):found.end() + 40]
            yield kind, around.decode("utf-8", "replace").replace("\n", " ")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    logs = sorted(name for name in os.listdir(folder) if name.endswith(".log"))
    bad = 0
    for name in logs:
        with open(os.path.join(folder, name), "rb") as file:
            for kind, around in findings(file.read()):
                bad += 1
                print(f"{name}: {kind}: …{around}…")
    print(f"{len(logs)} logs searched for secrets, {bad} findings")
    sys.exit(1 if bad or not logs else 0)


if __name__ == "__main__":
    main()
