#!/usr/bin/env python3
"""The search of scan_logs.py finds secrets, and nothing in ordinary lines."""
import os
import subprocess
import sys
import tempfile
import unittest

import scan_logs

SECRETS = {
    "virtual key": b'"key":"sk-tollgate-' + b"a1B" * 20 + b'c"',
    "access token": b"tgp_" + b"a" * 40,
    "support secret": b"tgs_" + b"a-_" * 14 + b"b",
    "webhook secret": b"whsec_" + b"A" * 40,
    "key of Stripe": b"sk_test_abcdefghijkl",
    "Authorization": b"authorization: Bearer abcdefghijklmnop",
    "session cookie": b"cookie: tollgate=" + b"a-_" * 14 + b"b",
    "token of a link": b"GET /session/v1/link?token=" + b"a-_" * 14 + b"b",
    "token of a session": b'{"challenge":"' + b"a-_" * 14 + b'b"}',
    "TOTP seed": b'"secret":"' + b"ABCDEFG7" * 4 + b'"',
    "recovery code": b'{"recovery_codes":["abcde-fgh23"]}',
    "engine key": b"x-api-key: engine-" + b"abcdefgh" * 4,
    "private key": b"-----BEGIN EC PRIVATE KEY-----",
    "password in a URL": b"postgresql://user:secret@host/db",
    "pepper": b"p" * 32,
    "login token": b"login-token-for-tests",
    "password": b"correct horse battery",
    "request body": b'{"error":"bad: {\\"role\\":1}"}',
    "canary": b"CANARYcanary0123",
}
ORDINARY = [
    b'{"level":"info","message":"request","endpoint":"chat_completions","status":200,"key":"0123456789ab"}',
    b'{"message":"key sk-tollgate-[redacted]","url":"http://engine"}',
    b"tollgate_http_requests_total{endpoint=\"chat_completions\",status=\"200\"} 12",
    b'{"error":"postgresql: connect: connection to server at \\"127.0.0.1\\" failed"}',
]


class ScanTest(unittest.TestCase):
    def test_each_secret_is_found(self):
        self.assertEqual(set(SECRETS), set(scan_logs.PATTERNS))
        for kind, text in SECRETS.items():
            self.assertIn(kind, [found for found, _ in scan_logs.findings(b"x " + text + b" y")])

    def test_ordinary_lines_are_not(self):
        for line in ORDINARY:
            self.assertEqual(list(scan_logs.findings(line)), [])

    def test_an_error_may_name_a_field(self):
        patterns = {**scan_logs.PATTERNS, **scan_logs.OF_ERRORS}
        self.assertEqual(list(scan_logs.findings(b'400 {"error":"\\"messages\\" is required"}', patterns)), [])
        self.assertEqual([kind for kind, _ in scan_logs.findings(b"400 hello there", patterns)], ["request body"])

    def run_on(self, **files):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as work:
            for name, text in files.items():
                place = work if name.startswith("core") else folder
                with open(os.path.join(place, name.replace("_", ".")), "wb") as file:
                    file.write(text)
            done = subprocess.run([sys.executable, scan_logs.__file__, folder, work], stdout=subprocess.PIPE)
            return done.returncode, done.stdout.decode()

    def test_logs_metrics_and_errors_are_searched(self):
        self.assertEqual(self.run_on(a_log=b"fine", a_metrics=b"fine", a_errors=b"fine")[0], 0)
        for kind in ("log", "metrics", "errors"):
            for name, text in SECRETS.items():
                if kind == "errors" and name == "request body":
                    continue
                code, output = self.run_on(a_log=b"fine", **{"b_" + kind: text})
                self.assertEqual(code, 1)
                self.assertIn(f"b.{kind}: {name}", output)

    def test_a_core_file_is_a_finding(self):
        for name in ("core", "core_123"):
            code, output = self.run_on(a_log=b"fine", **{name: b""})
            self.assertEqual(code, 1)
            self.assertIn("a core file", output)

    def test_without_logs_nothing_is_shown(self):
        self.assertEqual(self.run_on()[0], 1)


if __name__ == "__main__":
    unittest.main()
