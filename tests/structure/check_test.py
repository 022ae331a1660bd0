#!/usr/bin/env python3
"""Each rule of check.py finds what it is there for, and leaves its neighbours alone."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check  # noqa: E402


def found(rule, path, text, known=lambda name: True):
    return [message for _, message in rule(path, text, known)]


def include(path, name):
    return found(check.check_includes, path, f'#include "{name}"\n')


class Includes(unittest.TestCase):
    def test_a_lower_row_does_not_see_a_higher_one(self):
        self.assertTrue(include("common/base/a.h", "common/http/b.h"))
        self.assertTrue(include("common/rpc/a.h", "common/host/b.h"))
        self.assertFalse(include("common/http/a.h", "common/base/b.h"))
        self.assertFalse(include("common/http/a.cc", "common/http/b.h"))

    def test_nobody_reaches_into_a_neighbour(self):
        self.assertTrue(include("common/host/a.cc", "services/auth/a.h"))
        self.assertTrue(include("common/host/a.cc", "gateway/edge/a.h"))
        self.assertTrue(include("gateway/gateway_module.cc", "services/auth/a.h"))
        self.assertTrue(include("services/auth/a.cc", "services/billing/a.h"))
        self.assertTrue(include("services/auth/a.cc", "gateway/edge/a.h"))
        self.assertFalse(include("services/allinone/main.cc", "services/billing/a.h"))
        self.assertFalse(include("services/auth/a.cc", "services/auth/domain/a.h"))

    def test_product_does_not_include_tests(self):
        self.assertTrue(include("common/http/a.cc", "tests/support/http.h"))
        self.assertFalse(include("common/http/a_test.cc", "tests/support/http.h"))

    def test_domain_is_pure(self):
        self.assertTrue(include("services/billing/domain/ledger.h", "common/sql/sql.h"))
        self.assertTrue(found(check.check_includes, "services/billing/domain/a.cc", "#include <grpcpp/grpcpp.h>"))
        self.assertTrue(found(check.check_includes, "services/billing/domain/a.cc", "#include <thread>"))
        self.assertFalse(include("services/billing/domain/ledger.cc", "common/money/money.h"))

    def test_surfaces_and_pipeline(self):
        self.assertTrue(include("gateway/surfaces/models/a.cc", "common/clients/clients.h"))
        self.assertTrue(found(check.check_includes, "gateway/pipeline/a.cc", "#include <boost/beast/http.hpp>"))
        self.assertTrue(found(check.check_includes, "gateway/edge/a.h", "#include <boost/beast/http.hpp>"))
        self.assertFalse(found(check.check_includes, "gateway/edge/a.cc", "#include <boost/beast/http.hpp>"))

    def test_paths_start_at_the_top(self):
        self.assertTrue(found(check.check_includes, "common/base/a.cc", '#include "a.h"'))
        self.assertTrue(found(check.check_includes, "common/base/a.cc", '#include "common/base/gone.h"', lambda _: False))


class Lengths(unittest.TestCase):
    def test_files_and_lines(self):
        self.assertTrue(found(check.check_lengths, "common/base/a.cc", "x;\n" * (check.MAX_LINES + 1)))
        self.assertFalse(found(check.check_lengths, "common/base/a_test.cc", "x;\n" * (check.MAX_LINES + 1)))
        self.assertTrue(found(check.check_lengths, "common/base/a.cc", "x" * 101))
        self.assertFalse(found(check.check_lengths, "common/base/a.cc", 'auto s = R"(\n' + "x" * 101 + '\n)";'))
        self.assertTrue(found(check.check_lengths, "common/base/a.cc", 'auto s = R"(x)";\n' + "x" * 101))

    def test_functions_also_with_long_signatures(self):
        body = "  x();\n" * check.MAX_FUNCTION_LINES
        self.assertTrue(found(check.check_lengths, "common/base/a.cc", "void F() {\n" + body + "}\n"))
        self.assertTrue(found(check.check_lengths, "common/base/a.cc", "void F(int a,\n       int b) {\n" + body + "}\n"))
        self.assertTrue(found(check.check_lengths, "common/base/a.h", "class A {\n  void F() {\n" + body + "  }\n};\n"))

    def test_many_short_functions_are_fine(self):
        text = "class A {\n" + "  void F() {\n    x();\n  }\n" * 60 + "};\n"
        self.assertFalse(found(check.check_lengths, "common/base/a.cc", text))


class Calls(unittest.TestCase):
    def test_clock_and_environment(self):
        self.assertTrue(found(check.check_calls, "common/http/a.cc", "auto t = system_clock::now();"))
        self.assertFalse(found(check.check_calls, "common/rpc/a.cc", "context.set_deadline(system_clock::now());"))
        self.assertTrue(found(check.check_calls, "services/auth/a.cc", 'getenv("X")'))
        self.assertFalse(found(check.check_calls, "common/config/a.cc", 'getenv("X")'))

    def test_money(self):
        self.assertTrue(found(check.check_calls, "common/money/money.cc", "double price;"))
        self.assertFalse(found(check.check_calls, "common/money/money.cc", "// no double here"))

    def test_c_functions_and_sleeps(self):
        self.assertTrue(found(check.check_calls, "common/http/a.cc", "sprintf(a, b);"))
        self.assertFalse(found(check.check_calls, "common/http/a.cc", "snprintf(a, n, b);"))
        self.assertTrue(found(check.check_calls, "common/http/a_test.cc", "sleep_for(std::chrono::seconds(1));"))
        self.assertTrue(found(check.check_calls, "common/http/a_test.cc", "sleep_for(milliseconds(500));"))
        self.assertFalse(found(check.check_calls, "common/http/a_test.cc", "sleep_for(milliseconds(5));"))


class Words(unittest.TestCase):
    def test_paths_and_registries(self):
        self.assertTrue(found(check.check_words, "docs/a.md", "see /home" + "/me/x"))
        self.assertTrue(found(check.check_words, "a/package-lock.json", '"resolved": "x"'))
        self.assertTrue(found(check.check_words, "common/a.cc", "// TODO later"))
        self.assertFalse(found(check.check_words, "docs/a.md", "the framework/thing and /var/lib/tollgate"))

    def test_ports(self):
        self.assertTrue(found(check.check_ports, "tests/integration/a_test.cc", 'Connect("127.0.0.1:8080")'))
        self.assertFalse(found(check.check_ports, "tests/integration/a_test.cc", 'Listen("127.0.0.1:0")'))

    def test_build_files(self):
        self.assertTrue(found(check.check_cmake, "common/a/CMakeLists.txt", "add_library(x a.cc)"))
        self.assertFalse(found(check.check_cmake, "common/a/CMakeLists.txt", "tollgate_library(NAME x)"))

    def test_envelope(self):
        self.assertTrue(found(check.check_envelope, "gateway/edge/a.cc", 'x = "{\\"error\\":{"'))
        self.assertFalse(found(check.check_envelope, "gateway/envelopes/a.cc", 'x = "{\\"error\\":{"'))


class Pages(unittest.TestCase):
    def test_readmes(self):
        self.assertEqual([p for p, _, _ in check.check_readmes({"common/x/a.cc", "common/README.md"})], ["common/x"])

    def test_pages_name_what_is_there(self):
        there = {"common/http", "docs/a.md"}.__contains__
        self.assertTrue(found(check.check_pages, "docs/b.md", "see `common/gone.cc`", there))
        self.assertFalse(found(check.check_pages, "docs/b.md", "see `common/http` and `docs/{a}.md`, `x/y`", there))

    def test_error_table(self):
        code = '{ErrorId::kA, "a", 400, "bad", "t1", "t2", false, "x"}'
        right, wrong = "| a | 400 | `bad` | `t1` | `t2` | no | - |", "| a | 401 | `bad` | `t1` | `t2` | no | - |"
        for docs, count in ((right, 0), (wrong, 1), ("", 1)):
            pages = {"common/error/error.cc": code, "docs/errors.md": docs}
            self.assertEqual(len(list(check.check_error_table(pages.__getitem__))), count)


if __name__ == "__main__":
    unittest.main()
