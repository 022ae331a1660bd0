#!/usr/bin/env python3
"""The calculator of deploy/sizing: its figures are those of docs/performance.md, its tables those of docs/sizing.md, and its
arithmetic that of small loads done by hand."""
import importlib.util
import io
import json
import pathlib
import re
import sys
import unittest
from contextlib import redirect_stderr, redirect_stdout

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
SPEC = importlib.util.spec_from_file_location("sizing", ROOT / "deploy/sizing/sizing.py")
sizing = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(sizing)


def run(*arguments):
    out, error = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(error):
        try:
            code = sizing.main(list(arguments))
        except SystemExit as left:
            code = left.code
    return code, out.getvalue(), error.getvalue()


class Figures(unittest.TestCase):
    def test_each_measured_figure_is_in_the_row_of_performance_md_that_it_quotes(self):
        page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
        measured = sizing.Figures().tables["measured"]
        self.assertGreater(len(measured), 20)
        for name, figure in measured.items():
            self.assertIn(figure["quote"], page, name)
            numbers = [float(text.replace(",", "")) for text in re.findall(r"\d[\d,]*\.?\d*", figure["quote"])]
            self.assertIn(float(figure["value"]), numbers, name)

    def test_each_assumption_says_why(self):
        for name, figure in sizing.Figures().tables["assumed"].items():
            self.assertTrue(figure["what"] and figure["why"], name)

    def test_all_figures_are_used(self):
        source = (ROOT / "deploy/sizing/sizing.py").read_text(encoding="utf-8")
        for table in sizing.Figures().tables.values():
            for name in table:
                self.assertRegex(source, rf"\b(f|figures)\.{name}\b", name)

    def test_the_tables_of_the_page_are_what_is_calculated(self):
        self.assertEqual(run("--check")[0], 0, "deploy/sizing/sizing.py --write")

    def test_a_changed_figure_changes_the_page(self):
        figures = sizing.Figures()
        figures.gateway_token_us *= 2
        page = sizing.PAGE.read_text(encoding="utf-8")
        self.assertNotEqual(sizing.fill(page, figures), page)


class Arithmetic(unittest.TestCase):
    def setUp(self):
        self.figures = sizing.Figures()

    def ask(self, *arguments):
        code, out, error = run(*arguments, "--json")
        self.assertEqual(code, 0, error)
        return json.loads(out)

    def test_a_request_and_a_token_cost_what_was_measured(self):
        # 10,000 requests of 64 tokens without a prompt: 10,000 times 113 µs.
        one = self.ask("--requests-per-second", "10000", "--tokens-per-answer", "64", "--prompt-bytes", "0", "--shape", "all-in-one")
        self.assertAlmostEqual(one["services"][0]["cores"], 1.13)
        self.assertAlmostEqual(one["services"][0]["planned"], 1.13 / 0.6)
        # 1,000 streams of 50 tokens/s: 50,000 tokens of 7.7 µs and 166.7 requests of 110.2 µs at the gateway.
        many = {s["name"]: s for s in self.ask("--streams", "1000", "--prompt-bytes", "0")["services"]}
        self.assertAlmostEqual(many["gateway"]["cores"], 0.05 * 7.7 + 1000 / 6 * 110.2 / 1e6)
        self.assertAlmostEqual(many["billing"]["cores"], 0.05 * 0.5 + 1000 / 6 * 116.1 / 1e6)

    def test_prompts_cost_what_was_measured_at_both_sizes(self):
        for size, measured in ((100_000, 233), (2_000_000, 3952)):
            one = self.ask("--requests-per-second", "1000", "--tokens-per-answer", "8", "--prompt-bytes", str(size), "--shape", "all-in-one")
            # The base is a request of 64 tokens, 3 µs above one of 8.
            self.assertAlmostEqual(one["services"][0]["cores"], (measured + 3) / 1000, places=4)

    def test_each_slice_of_a_long_answer_is_a_write(self):
        short = self.ask("--requests-per-second", "10", "--tokens-per-answer", "4096")["database"]
        long = self.ask("--requests-per-second", "10", "--tokens-per-answer", "8193")["database"]
        self.assertEqual(short["writes"], 20)
        self.assertEqual(long["writes"], 40)

    def test_more_load_never_takes_less(self):
        for shape in ("cluster", "all-in-one"):
            before = None
            for streams in (1, 10, 1000, 100_000, 1_000_000):
                services = self.ask("--streams", str(streams), "--shape", shape)["services"]
                now = (sum(s["cores"] for s in services), sum(s["memory"] for s in services))
                if before:
                    self.assertGreater(now, before)
                before = now

    def test_a_ledger_that_is_too_small_says_so(self):
        self.assertTrue(self.ask("--streams", "1000")["database"]["fits"])
        self.assertFalse(self.ask("--streams", "100000")["database"]["fits"])
        self.assertIn("does not fit", run("--streams", "100000")[1])
        divided = self.ask("--streams", "100000", "--database", "partitioned")["database"]
        self.assertEqual(divided["servers"], 3)
        self.assertIn("not built", divided["note"])
        self.assertEqual(self.ask("--streams", "10", "--database", "distributed")["database"]["servers"], 3)

    def test_what_makes_no_sense_is_refused(self):
        for arguments in ((), ("--streams", "-1"), ("--streams", "x"), ("--streams", "1", "--tokens-per-answer", "0"),
                          ("--streams", "1", "--tokens-per-second", "nan")):
            code, _, error = run(*arguments)
            self.assertEqual(code, 2, arguments)
            self.assertIn("error:", error)

    def test_every_figure_is_told_with_its_source(self):
        code, out, _ = run("--figures")
        self.assertEqual(code, 0)
        self.assertEqual(len(out.splitlines()), sum(len(table) for table in self.figures.tables.values()))


if __name__ == "__main__":
    unittest.main()
