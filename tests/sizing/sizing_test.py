#!/usr/bin/env python3
"""The calculator of deploy/sizing: its figures agree with docs/performance.md, its tables with docs/sizing.md, and its
arithmetic with small loads calculated by hand."""
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
        source = "".join((ROOT / "deploy/sizing" / name).read_text(encoding="utf-8") for name in ("sizing.py", "citus.py"))
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
        # Citus: the coordinator is the bottleneck, and the tool reports its limit.
        self.assertTrue(self.ask("--requests-per-second", "100", "--database", "citus")["database"]["fits"])
        large = self.ask("--requests-per-second", "100000", "--database", "citus")["database"]
        self.assertFalse(large["fits"])
        self.assertIn("the coordinator does not fit one server", run("--requests-per-second", "100000", "--database", "citus")[1])

    def test_prices_are_processors_and_disk(self):
        asked = ("--requests-per-second", "1000", "--tokens-per-answer", "64", "--prompt-bytes", "0")
        found = self.ask(*asked, "--processor-hour-usd", "3.6", "--gb-month-usd", "1", "--keep-months", "2")
        # 3.6 USD an hour are 0.001 USD a second; a million requests take 1,000 seconds.
        self.assertAlmostEqual(found["usd_per_million"]["services"], sum(s["planned"] for s in found["services"]))
        self.assertAlmostEqual(found["usd_per_million"]["disk of the ledger"], self.figures.citus.bytes_of_pair() * 2 / 1000)
        free = self.ask(*asked, "--processor-hour-usd", "0", "--gb-month-usd", "0")["usd_per_million"]
        self.assertEqual(set(free.values()), {0})

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


class Citus(unittest.TestCase):
    """Lines through the measured rows, of rows that are easy to calculate: 1,000 µs a batch and 100 an operation on the coordinator,
    2,000 and 500 on the workers."""

    class Made(sizing.citus.Rows):
        def __init__(self):
            def row(workers, operations, one_server):
                of = lambda batch, operation: 2 * batch / operations + 2 * operation
                each = [of(2000, 500) if place == 0 else 0.0 for place in range(workers)] if one_server else [of(2000, 500) / max(workers, 1)] * workers
                return {"batches_per_operation": 1 / operations, "cpu_us": [of(300, 50), of(1000, 100), *each], "bytes": 2000, "rate": 1}
            self.rows = {str(workers): {"idle": {"ms_per_s": [1, 2] + [4] * workers}, "spread": row(workers, 1, False),
                                        "full": row(workers, 1.5, False), "hot": row(workers, 2, True), "hot full": row(workers, 200, True)}
                         for workers in range(5)}

    def setUp(self):
        self.rows = self.Made()
        self.figures = sizing.Figures()
        self.figures.citus = self.rows

    def test_costs_are_found_again(self):
        for part, batch, operation in (("billing", 300, 50), ("coordinator", 1000, 100), ("workers", 2000, 500)):
            found = sizing.citus.costs(self.rows, part)
            self.assertAlmostEqual(found[0], batch)
            self.assertAlmostEqual(found[1], operation)

    def test_other_numbers_of_workers_are_predicted(self):
        _, rows = sizing.citus.check_rows(self.rows)
        self.assertEqual(len(rows), 16)
        for row in rows:
            self.assertEqual((row[5], row[8]), ("+0 %", "+0 %"), row)
        self.assertEqual([row[-1] for row in rows].count("fitted"), 2 + 4)

    def test_small_loads_have_batches_of_one_and_large_ones_share_them(self):
        self.assertEqual(sizing.citus.batch_operations(self.figures, 10_000), 1)
        # 20 ms of 102,400 operations/s, over 1,024 shards.
        self.assertAlmostEqual(sizing.citus.batch_operations(self.figures, 102_400), 2)
        used, operations = sizing.citus.needs(self.figures, self.rows, 1000, 2000)
        self.assertEqual(operations, 1)
        self.assertAlmostEqual(used["coordinator"], 2.2 + 0.002)
        self.assertAlmostEqual(used["workers"], 5 + 0.006)

    def test_the_coordinator_ends_where_it_fills_its_server(self):
        limit = sizing.citus.limit(self.figures, self.rows)
        used, _ = sizing.citus.needs(self.figures, self.rows, limit, 2 * limit)
        self.assertAlmostEqual(used["coordinator"] / self.figures.plan_share, self.figures.server_cores, places=3)

    def test_the_measured_rows_are_told_whole(self):
        rows = sizing.citus.Rows()
        self.assertEqual(list(rows.rows), ["0", "1", "2", "3", "4"])
        for count, row in rows.rows.items():
            for load in ("spread", "hot", "full", "hot full"):
                self.assertEqual(len(row[load]["cpu_us"]), 2 + int(count))
        self.assertEqual(len(sizing.citus.measured_rows(rows)[1]), 20)


if __name__ == "__main__":
    unittest.main()
