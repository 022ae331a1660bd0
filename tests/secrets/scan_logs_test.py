#!/usr/bin/env python3
"""The search of scan_logs.py finds what it is for, and nothing in ordinary lines."""
import unittest

import scan_logs

SECRETS = {
    "virtual key": b'"key":"sk-tollgate-' + b"a1B" * 20 + b'c"',
    "access token": b"tgp_" + b"a" * 40,
    "webhook secret": b"whsec_" + b"A" * 40,
    "key of Stripe": b"sk_test_abcdefghijkl",
    "Authorization": b"authorization: Bearer abcdefghijklmnop",
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


if __name__ == "__main__":
    unittest.main()
