#!/usr/bin/env python3
"""Each rule of check.py fires on a bad sample and stays silent on a good one."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check  # noqa: E402
import rules_alerts  # noqa: E402
import rules_citations  # noqa: E402
import rules_layout  # noqa: E402
import rules_text  # noqa: E402


def found(rule, path, text, known=lambda name: True):
    return [message for _, message in rule(path, text, known)]


def include(path, name):
    return found(check.check_includes, path, f'#include "{name}"\n')


class Includes(unittest.TestCase):
    def test_a_lower_layer_does_not_include_a_higher_one(self):
        self.assertTrue(include("common/base/a.h", "common/http/b.h"))
        self.assertTrue(include("common/rpc/a.h", "common/host/b.h"))
        self.assertFalse(include("common/http/a.h", "common/base/b.h"))
        self.assertFalse(include("common/http/a.cc", "common/http/b.h"))

    def test_services_and_gateway_do_not_include_each_other(self):
        self.assertTrue(include("common/host/a.cc", "services/auth/a.h"))
        self.assertTrue(include("common/host/a.cc", "gateway/edge/a.h"))
        self.assertTrue(include("gateway/gateway_module.cc", "services/auth/a.h"))
        self.assertTrue(include("services/auth/a.cc", "services/billing/a.h"))
        self.assertTrue(include("services/auth/a.cc", "gateway/edge/a.h"))
        self.assertTrue(include("services/auth/main.cc", "services/people/rpc/a.h"))
        self.assertTrue(include("services/auth/auth_module.cc", "services/people/people_module.h"))
        self.assertFalse(include("services/auth/main.cc", "services/people/people_module.h"))
        self.assertFalse(include("services/allinone/main.cc", "services/billing/a.h"))
        self.assertFalse(include("services/auth/a.cc", "services/auth/domain/a.h"))

    def test_folders_of_a_service_and_of_the_gateway_are_layers(self):
        self.assertTrue(include("services/billing/storage/store.cc", "services/billing/verify/verify.h"))
        self.assertTrue(include("services/billing/rpc/a.cc", "services/billing/billing_module.h"))
        self.assertTrue(include("gateway/pipeline/a.cc", "gateway/surfaces/shared/b.h"))
        self.assertTrue(include("gateway/pipeline/checks/a.cc", "gateway/pipeline/answer/b.h"))
        self.assertFalse(include("gateway/pipeline/answer/a.cc", "gateway/pipeline/request_context.h"))
        self.assertFalse(include("services/billing/verify/verify.cc", "services/billing/storage/store.h"))
        self.assertFalse(include("services/billing/billing_module.cc", "services/billing/rpc/a.h"))
        self.assertFalse(include("services/billing/storage/store_test.cc", "services/billing/verify/verify.h"))
        self.assertFalse(include("gateway/surfaces/a.cc", "gateway/pipeline/b.h"))

    def test_product_does_not_include_tests(self):
        self.assertTrue(include("common/http/a.cc", "tests/support/http.h"))
        self.assertFalse(include("common/http/a_test.cc", "tests/support/http.h"))

    def test_product_does_not_include_helpers_of_tests(self):
        self.assertTrue(include("common/rpc/a.cc", "common/runtime/testing/loops.h"))
        self.assertTrue(include("gateway/gateway_module.cc", "gateway/testing/fakes.h"))
        self.assertFalse(include("common/rpc/a_test.cc", "common/runtime/testing/loops.h"))
        self.assertFalse(include("common/rpc/testing/b.cc", "common/runtime/testing/loops.h"))

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
        self.assertTrue(found(check.check_includes, "common/base/a.cc", '#include "common/base/no.h"', lambda _: False))


class Lengths(unittest.TestCase):
    def test_files_and_lines(self):
        self.assertTrue(found(check.check_lengths, "common/base/a.cc", "x;\n" * (rules_text.MAX_LINES + 1)))
        self.assertFalse(found(check.check_lengths, "common/base/a_test.cc", "x;\n" * (rules_text.MAX_LINES + 1)))
        self.assertTrue(found(check.check_lengths, "common/base/a.cc", "x" * 101))
        self.assertFalse(found(check.check_lengths, "common/base/a.cc", 'auto s = R"(\n' + "x" * 101 + '\n)";'))
        self.assertTrue(found(check.check_lengths, "common/base/a.cc", 'auto s = R"(x)";\n' + "x" * 101))

    def test_functions_also_with_long_signatures(self):
        body = "  x();\n" * rules_text.MAX_FUNCTION_LINES
        self.assertTrue(found(check.check_lengths, "common/base/a.cc", "void F() {\n" + body + "}\n"))
        self.assertTrue(found(check.check_lengths, "common/base/a.cc", "void F(int a,\n       int b) {\n" + body + "}\n"))
        self.assertTrue(found(check.check_lengths, "common/base/a.h", "class A {\n  void F() {\n" + body + "  }\n};\n"))

    def test_many_short_functions_are_allowed(self):
        text = "class A {\n" + "  void F() {\n    x();\n  }\n" * 60 + "};\n"
        self.assertFalse(found(check.check_lengths, "common/base/a.cc", text))


class Propagation(unittest.TestCase):
    def test_an_error_is_returned_by_the_macro(self):
        for text in ["auto x = F(a);\n  if (!x.ok()) return Fail{std::move(x).error()};",
                     "const auto x = F();\n  if (!x) co_return Fail{x.error()};",
                     "if (auto x = F(); !x) return Fail{x.error()};"]:
            self.assertTrue(found(check.check_propagation, "common/a.cc", text))
            self.assertFalse(found(check.check_propagation, "common/a_test.cc", text))
        for text in ["TRY(auto x, F(a));", "auto x = F();\n  if (!x) return Fail{ErrorOf(x.error())};"]:
            self.assertFalse(found(check.check_propagation, "common/a.cc", text))


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

    def test_pages_name_paths_that_exist(self):
        there = {"common/http", "docs/a.md"}.__contains__
        self.assertTrue(found(check.check_pages, "docs/b.md", "see `common/gone.cc`", there))
        self.assertFalse(found(check.check_pages, "docs/b.md", "see `common/http` and `docs/{a}.md`, `x/y`", there))

    def test_error_table(self):
        code = '{ErrorId::kA, "a", 400, "bad", "t1", "t2", false, "x"}'
        right, wrong = "| a | 400 | `bad` | `t1` | `t2` | no | - |", "| a | 401 | `bad` | `t1` | `t2` | no | - |"
        for docs, count in ((right, 0), (wrong, 1), ("", 1)):
            pages = {"common/error/error.cc": code, "docs/errors.md": docs}
            self.assertEqual(len(list(check.check_error_table(pages.__getitem__))), count)


    def test_reason_table(self):
        code = '{Reason::kNone, ""},\n{Reason::kA, "a"},\n{Reason::kB, "b"},'
        a, b = "| `a` | meaning | change |\n", "| `b` | meaning | change |\n"
        for docs, count in ((a + b, 0), (a, 1), (b + a, 1), (a + b + b, 1), (a + b + "| `c` | x | y |", 1)):
            pages = {"common/error/reason.cc": code, "docs/operations/why-refused.md": docs}
            self.assertEqual(len(list(check.check_reason_table(pages.__getitem__))), count, docs)


class Phrases(unittest.TestCase):
    def test_refused_phrases_name_their_replacement(self):
        for text, instead in (("a key that can not be checked", "cannot"), ("while auth is away", "unreachable"),
                              ("the client has gone", "disconnected"), ("never unheard", "receives"),
                              ("if (!MayGoOn(x))", "ContinueOrRefuse"), ("cache.Fly(key)", "Start")):
            self.assertIn(instead, "".join(found(check.check_phrases, "gateway/a.cc", text)), text)

    def test_plain_text_passes(self):
        for text in ("cannot", "the limiter is unreachable", "a right-away answer", "on the fly", "Understanding("):
            self.assertFalse(found(check.check_phrases, "gateway/a.cc", text), text)
        self.assertFalse(found(check.check_phrases, "tests/clients/package-lock.json", "can not"))


class MoneyNames(unittest.TestCase):
    def test_protos(self):
        for bad in ("int64 paid = 2;", "optional int64 cap = 6;", "  int64 month_spent = 8;"):
            self.assertTrue(found(check.check_money_names, "proto/tollgate/billing/v1/billing.proto", bad), bad)
        for good in ("int64 paid_nano_usd = 2;", "int64 open_holds = 3;", "int64 held_retry_ms = 4;", "int32 cap = 5;"):
            self.assertFalse(found(check.check_money_names, "proto/tollgate/billing/v1/billing.proto", good), good)

    def test_domain_headers(self):
        for bad in ("int64_t amount = 0;", "void Grow(Hold& hold, int64_t amount);", "std::optional<int64_t> cap;",
                    "int64_t Room(const std::optional<int64_t>& cap, int32_t month);"):
            self.assertTrue(found(check.check_money_names, "services/billing/domain/a.h", bad), bad)
        for good in ("int64_t amount_nano_usd = 0;", "int64_t now_us;  // held", "int64_t available() const;"):
            self.assertFalse(found(check.check_money_names, "services/billing/domain/a.h", good), good)
        self.assertFalse(found(check.check_money_names, "gateway/a.h", "int64_t amount = 0;"))


class Layout(unittest.TestCase):
    def test_a_test_is_named_after_a_source_beside_it(self):
        there = {"common/a/inbox.cc", "common/a/link_queue.h"}.__contains__
        for good in ("inbox_test.cc", "inbox_full_test.cc", "link_queue_test.cc", "link_queue_two_loops_test.cc"):
            self.assertFalse(found(check.check_test_name, "common/a/" + good, "", there), good)
        for bad in ("rpc_test.cc", "link_test.cc", "full_inbox_test.cc"):
            self.assertTrue(found(check.check_test_name, "common/a/" + bad, "", there), bad)
        self.assertFalse(found(check.check_test_name, "tests/contract/contract_test.cc", "", there))

    def test_sql_is_in_storage(self):
        for statement in ('"SELECT a FROM b"', '"UPDATE a SET b = 1"', 'R"(CREATE TABLE a (b {int}))"', '"DELETE FROM a"'):
            self.assertTrue(found(check.check_sql, "services/people/sign_in/a.cc", statement), statement)
            for path in ("services/people/storage/a.cc", "services/people/sign_in/a_test.cc", "services/billing/verify/a.cc"):
                self.assertFalse(found(check.check_sql, path, statement), path)
        self.assertFalse(found(check.check_sql, "services/people/rpc/a.cc", '"SELECTED", "PATCH"'))

    def test_every_service_has_the_same_shape(self):
        def service(name, folders):
            top = ("CMakeLists.txt", "README.md", "main.cc", f"{name}_module.cc", f"{name}_module.h")
            if name in rules_layout.WITHOUT_PROCESS:
                top = tuple(file for file in top if file != "main.cc")
            return {f"services/{name}/{file}" for file in top} | {f"services/{name}/{f}/a.cc" for f in folders}

        files = set().union(*(service(name, {"domain", "rpc"}) for name in rules_layout.SERVICES
                              if name != "dashboard"), service("dashboard", {"http"}))
        self.assertFalse(list(check.check_services(files)))
        self.assertFalse(list(check.check_services(files | {"services/billing/commit/a.cc"})))
        for wrong in (files - {"services/auth/main.cc"}, files - {"services/auth/rpc/a.cc"},
                      files - {"services/dashboard/http/a.cc"}, files | {"services/auth/keys.cc"},
                      files | {"services/auth/commit/a.cc"}):
            self.assertEqual(len(list(check.check_services(wrong))), 1)


class Citations(unittest.TestCase):
    TREE = {
        "README.md": "# Tollgate\n",
        "docs/contract.md": "# Contract\n## Errors\n### Cases of 400 `bad_request`\n## Limits\n",
        "docs/decisions.md": "# Decisions\n## Money\n1. **One.** x\n2. **Two.** x\n3. **Three.** x\n",
        "docs/design/wire.md": "# Wire\n## 2. Chat\n### 2.4 Reasoning text\n## 8. Catalog: `GET /v1/models`\n",
        "docs/design/ledger.md": "# Ledger\n## 1. Unit\n| **I6** Ids unique | x |\n",
        "docs/design/hostile-inputs.md": "# Hostile\n| # | x |\n| H49 | x |\n| H50 | x |\n",
        "docs/design/performance.md": "# Performance\n## Large prompts\n1. First\n2. Second\n",
        "docs/adr/0003-hash-chain.md": "# 3. Chain\n",
        "common/a/README.md": "# a\n",
    }

    def messages(self, path, text):
        pages = rules_citations.Pages(self.TREE, self.TREE.__getitem__)
        return [message for _, message in check.check_citations(path, text, pages)]

    def check_all(self, path, good, bad):
        for text in good:
            self.assertEqual(self.messages(path, text), [], text)
        for text in bad:
            self.assertTrue(self.messages(path, text), text)

    def test_pages_are_named_by_their_path(self):
        self.check_all("common/a/a.cc", ["// docs/design/wire.md", "// README.md", "// CONTRIBUTING.md",
                                         "// https://x.org/a/guide.md", 'x = "/README.md"'],
                       ["// wire.md", "// docs/wire.md", "// decisions.md", "// reliability.md", "// reliability 1.4",
                        "// docs/design/gone.md", "// gateway-spec, rule 3", "// spec: docs/contract.md"])
        self.check_all("docs/design/ledger.md", ["wire.md", "[decisions.md](../decisions.md)", "see ../contract.md"],
                       ["decisions.md", "../wire.md"])

    def test_sections_exist(self):
        self.check_all("common/a/a.cc",
                       ["// docs/design/wire.md 2.4", "// docs/design/wire.md 2, 2.4 and 8.",
                        "// docs/design/wire.md 2-8", "// docs/design/wire.md section 8", "// docs/design/wire.md\n// 2.4",
                        "// docs/design/wire.md",
                        "// docs/design/ledger.md 1, docs/design/wire.md 8", "// docs/design/performance.md, point 2"],
                       ["// docs/design/wire.md 9", "// docs/design/wire.md 2, 2.5", "// docs/design/wire.md\n// 2.5",
                        "// docs/design/wire.md section 3", "// docs/contract.md 3", "// docs/design/wire.md 2 to 7",
                        "// docs/design/performance.md, point 3"])
        self.check_all("docs/contract.md", ["[design/wire.md](design/wire.md) 2.4"], ["[wire](design/wire.md) 2.5"])

    def test_titles_exist(self):
        self.check_all("common/a/a.cc",
                       ['// docs/contract.md "Errors"', '// docs/contract.md "Errors" and "Limits".',
                        '// docs/contract.md "Cases of 400 bad_request" 1', '// docs/decisions.md "Money"',
                        '// docs/design/performance.md, "Large\n// prompts"',
                        '// docs/design/wire.md "Reasoning text"'],
                       ['// docs/contract.md "Error"', '// docs/contract.md "Errors" and "Limit"'])

    def test_decisions_exist(self):
        self.check_all("common/a/a.cc", ["// decision 3", "// decisions 1, 2 and 3.", "// decisions 1-3",
                                         "// Decision 2:", "// decisions 1 to 3;", "// docs/decisions.md 3",
                                         "// a decision", "// (decision\n// 2)"],
                       ["// decision 4", "// decisions 1, 4", "// decisions 2 to 5", "// docs/decisions.md 7",
                        "// (decision\n// 9)"])

    def test_rows_invariants_and_records_exist(self):
        self.check_all("common/a/a_test.cc", ["// H49, H50", "// invariant I6", "// ADR 0003", "// docs/adr/0003"],
                       ["// H51", "// invariant I7", "// invariants I6 and I8", "// ADR 0004", "// docs/adr/0009"])
        self.check_all("docs/a.md", ["an H1 heading"], [])

    def test_links_resolve(self):
        self.check_all("docs/README.md",
                       ["[x](contract.md#errors)", "[x](contract.md#cases-of-400-bad_request)", "[x](adr/)",
                        "[x](design/wire.md#8-catalog-get-v1models)", "[x](https://x.org/a.md)",
                        "[x](../README.md)"],
                       ["[x](gone.md)", "[x](contract.md#error)", "[x](#errors)", "[x](gone/)"])


class Grammar(unittest.TestCase):
    def bad(self, path, text):
        return found(check.check_grammar, path, text)

    def test_openers(self):
        for text in ("Of one call.", "The size. Of one call.", "Those that failed.", "As of a router that refuses.",
                     "The same of each call.", "That the key is known means little.", "Nothing: it has none."):
            self.assertTrue(self.bad("common/base/a.h", f"int x;  // {text}\n"), text)
            self.assertTrue(self.bad("proto/tollgate/a.proto", f"// A field.\n\n// {text}\n"), text)
            self.assertTrue(self.bad("services/dashboard/web/src/a.tsx", f"// {text}\n"), text)
            self.assertTrue(self.bad("tests/a.py", f'def f():\n    """{text}"""\n'), text)
            self.assertTrue(self.bad("tests/a/prove", f"#!/bin/bash\n# {text}\n"), text)
            self.assertTrue(self.bad("docs/a.md", f"- **{text}** x\n"), text)
            self.assertTrue(self.bad("docs/a.md", f"| a | {text} |\n"), text)

    def test_constructions(self):
        for text in ("it is no key", "they are none", "a node that is none any more", "for want of credit", "it hardly grows",
                     "made anew", "a server stands still", "the next try follows", "each is looked at once", "beside the loop",
                     "waits for so long", "after so many calls", "it is they that fail"):
            self.assertTrue(self.bad("common/base/a.cc", f"// x {text}.\n"), text)
            self.assertTrue(self.bad("common/base/a.cc", f'Warn("{text}");\n'), text)
            self.assertTrue(self.bad("docs/a.md", f"x {text}.\n"), text)
            self.assertTrue(self.bad("deploy/a.yml", f"summary: {text}\n"), text)
        self.assertEqual([number for number, _ in check.check_grammar("a.h", "x\n// A key is\n// no secret.\n", None)], [2])
        self.assertTrue(self.bad("a.cc", "int ms = 10'000;  // the router's key is no secret\n"))

    def test_plain_sentences_pass(self):
        for text in ("There is no key.", "it is no longer used", "there are none", "no larger than a page", "is no faster than 1",
                     "part of the key", "Of course.", "As of 2026-11-01 it holds.", "That is why.", "that the key is known",
                     "as long as it runs", "so many that they wait", "still runs"):
            self.assertFalse(self.bad("common/base/a.cc", f"// {text}\n"), text)
            self.assertFalse(self.bad("docs/a.md", f"{text}\n"), text)
        self.assertFalse(self.bad("common/sql/a.cc", '#include "common/sql/beside.h"\nint beside = 1;\n'))
        self.assertFalse(self.bad("docs/a.md", "```\nOf code\n```\nThe value `is no key`.\n"))
        self.assertFalse(self.bad("docs/a.md", "The size\nOf Things is a name.\n"))


class AlertRules(unittest.TestCase):
    GOOD = """groups: [{name: g, rules: [{alert: A, expr: 'rate(tollgate_a_total[5m]) > 0', labels: {severity: warning},
        annotations: {summary: s, action: a, runbook: r}}]}]"""

    def faults(self, text, sources='Counter("tollgate_a_total"', operations="`tollgate_a_total` growing"):
        return list(rules_alerts.faults(text, sources, operations))

    def test_alerts_are_about_documented_metrics(self):
        self.assertEqual(self.faults(self.GOOD), [])
        self.assertTrue(self.faults(self.GOOD, sources='"tollgate_a_total_old"'))
        self.assertTrue(self.faults(self.GOOD, operations=""))
        self.assertTrue(self.faults(self.GOOD.replace(", runbook: r", "")))
        own = self.GOOD.replace("rate(tollgate_a_total[5m])", "tollgate:a:rate5m").replace("{name: g, rules: [", "{name: g, rules: [{record: tollgate:a:rate5m, expr: x}, ")
        self.assertEqual(self.faults(own), [])
        histogram = self.GOOD.replace("tollgate_a_total", "tollgate_a_seconds_bucket")
        self.assertEqual(self.faults(histogram, 'Histogram("tollgate_a_seconds"', "`tollgate_a_seconds`"), [])
        self.assertTrue(self.faults(histogram))
        shipped = self.GOOD.replace("rate(tollgate_a_total[5m])", "etcd_server_has_leader")
        self.assertEqual(self.faults(shipped, "", "`etcd_server_has_leader`"), [])
        self.assertTrue(self.faults(shipped, "", ""))
        for good, bad in (("tollgate_a_total", "up"), ("warning", "red"), ("action: a", "action: ''"), ("alert: A, ", ""),
                          ("groups", "group"), ("alert", "alrt"), ("]}]", "")):
            self.assertTrue(self.faults(self.GOOD.replace(good, bad)), bad)


if __name__ == "__main__":
    unittest.main()
