#!/usr/bin/env python3
"""Searches the files that all tests left in a folder (TOLLGATE_TEST_LOGS) for secrets and prompts: the logs of all processes, their
metrics at an orderly stop, and the bodies of all errors that HTTP clients of tests got.

scan_logs.py FOLDER [WORK_FOLDER…]: prints each finding; 1 if there is one, if there is a core file in one of the folders,
or if there are no logs.
"""
import os
import re
import sys

# Patterns of the product's secrets, and secrets and prompts of the tests.
PATTERNS = {
    "virtual key": rb"sk-[a-z0-9]+-[0-9A-Za-z]{61}",
    "access token": rb"tgp_[0-9A-Za-z_-]{20,}",
    "support secret": rb"tgs_[0-9A-Za-z_-]{20,}",
    "webhook secret": rb"whsec_[0-9A-Za-z]{20,}",
    "key of Stripe": rb"[sr]k_(?:test|live)_[0-9A-Za-z]{12,}",
    "Authorization": rb"Bearer [0-9A-Za-z_.~+/-]{16,}",
    "session cookie": rb"tollgate(?:_[a-z]+)?=[0-9A-Za-z_-]{20,}",
    "token of a link": rb"[?&]token=[0-9A-Za-z_-]{20,}",
    "token of a session": rb'"(?:token|challenge|csrf_token|cookie)":"[0-9A-Za-z_-]{20,}"',
    "TOTP seed": rb"otpauth://|(?<![0-9A-Za-z])[A-Z2-7]{32}(?![0-9A-Za-z])",
    "recovery code": rb'"(?=[^"]*[2-9])[a-km-z2-9]{5}-[a-km-z2-9]{5}"',
    "engine key": rb"engine-key-for-tests|engine-[a-z]{32}",
    "private key": rb"-----BEGIN [A-Z ]*PRIVATE KEY",
    "password in a URL": rb"[a-z]+://[^/@ \"]*:[^/@ \"]+@",
    "pepper": rb"a pepper for tests that|p{32}",
    "login token": rb"login-token-for-tests",
    "password": rb"correct horse battery|another good password",
    "request body": rb'x_sim|hello there|\\"(?:role|messages|prompt)\\"',
    "canary": rb"(?i)canary[a-z0-9]{8}",
}
# An error names the field that is wrong, in quotes.
OF_ERRORS = {"request body": rb"x_sim|hello there"}
SEARCHED = (".log", ".metrics", ".errors")


def findings(text, patterns=None):
    """(kind, surrounding text) of the first match of each pattern."""
    for kind, pattern in (patterns or PATTERNS).items():
        found = re.search(pattern, text)
        if found:
            around = text[max(0, found.start() - 200):found.end() + 40]
            yield kind, around.decode("utf-8", "replace").replace("\n", " ")


def core_files(folder):
    """Core files have no fixed place: the folders in which processes run are given."""
    return [name for name in sorted(os.listdir(folder)) if re.search(r"(?:^|-)core(?:\.\d+)?$", name)]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    files = sorted(name for name in os.listdir(folder) if name.endswith(SEARCHED))
    bad = 0
    for name in files:
        patterns = {**PATTERNS, **OF_ERRORS} if name.endswith(".errors") else PATTERNS
        with open(os.path.join(folder, name), "rb") as file:
            for kind, around in findings(file.read(), patterns):
                bad += 1
                print(f"{name}: {kind}: …{around}…")
    for place in sys.argv[1:]:
        for name in core_files(place):
            bad += 1
            print(f"{os.path.join(place, name)}: a core file")
    counts = ", ".join(f"{sum(name.endswith(kind) for name in files)} {kind}" for kind in SEARCHED)
    print(f"searched for secrets: {counts} files, {bad} findings")
    sys.exit(1 if bad or not files else 0)


if __name__ == "__main__":
    main()
