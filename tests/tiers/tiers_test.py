#!/usr/bin/env python3
"""Tests which suites a change affects, which ones a slice takes, and the record of a run."""
import pathlib
import tempfile
import unittest

import record
import slice as slices
import suites


def suite(name, seconds=10, labels=("all",), reads=(), serial=False):
    return suites.Suite({"name": name, "properties": [
        {"name": "LABELS", "value": [*labels, *(f"reads={path}" for path in reads)]},
        {"name": "COST", "value": seconds}, *([{"name": "RUN_SERIAL", "value": True}] if serial else [])]})


class Graph(suites.Targets):
    """common/base <- gateway <- gateway_tests; base_tests tests common/base alone."""

    def __init__(self):
        self.folder = {"base": "common/base", "base_tests": "common/base", "gateway": "gateway", "gateway_tests": "gateway",
                       "helm_tests": "tests/helm", "tollgate_proto_auth": "proto"}
        self.needs = {"base": set(), "base_tests": {"base"}, "gateway": {"base", "tollgate_proto_auth"},
                      "gateway_tests": {"gateway"}, "helm_tests": set(), "tollgate_proto_auth": set()}
        self.sources = {"base": {"common/base/id.cc"}, "base_tests": {"common/base/id_test.cc"},
                        "gateway": {"gateway/edge/edge.cc"}, "gateway_tests": {"gateway/edge/edge_test.cc"},
                        "helm_tests": set(), "tollgate_proto_auth": set()}


ALL = [suite("base_tests"), suite("gateway_tests"), suite("helm_tests", reads=["deploy/helm"])]


class AffectedTest(unittest.TestCase):
    def affected(self, *paths):
        return [s.name for s in suites.affected(ALL, Graph(), paths)]

    def test_a_source_concerns_its_suite_and_those_of_what_links_it(self):
        self.assertEqual(self.affected("common/base/id.cc"), ["base_tests", "gateway_tests"])
        self.assertEqual(self.affected("gateway/edge/edge.cc"), ["gateway_tests"])

    def test_a_test_concerns_itself(self):
        self.assertEqual(self.affected("common/base/id_test.cc"), ["base_tests"])

    def test_a_header_concerns_what_has_sources_beside_it(self):
        self.assertEqual(self.affected("gateway/edge/edge.h"), ["gateway_tests"])

    def test_a_folder_stands_for_all_that_is_in_it(self):
        self.assertEqual(self.affected("gateway"), ["gateway_tests"])
        self.assertEqual(self.affected("common"), ["base_tests", "gateway_tests"])

    def test_a_proto_concerns_what_links_its_area(self):
        self.assertEqual(self.affected("proto/tollgate/auth/v1/auth.proto"), ["gateway_tests"])

    def test_a_script_suite_is_concerned_by_what_it_reads_and_by_its_folder(self):
        self.assertEqual(self.affected("deploy/helm/tollgate/values.yaml"), ["helm_tests"])
        self.assertEqual(self.affected("tests/helm/chart.py"), ["helm_tests"])

    def test_the_build_itself_concerns_every_suite(self):
        self.assertEqual(len(self.affected("cmake/Tollgate.cmake")), len(ALL))

    def test_a_page_that_nobody_reads_concerns_none(self):
        self.assertEqual(self.affected("docs/glossary.md"), [])


class SliceTest(unittest.TestCase):
    GREEN = {"old": {"at": 100}, "new": {"at": 200}, "touched": {"at": 300}}

    def names(self, candidates, seconds, touched=()):
        ordered = slices.order(candidates, self.GREEN, lambda s: s.name in touched)
        return [s.name for s in slices.fill(ordered, seconds)[0]]

    def test_touched_ones_come_first_then_the_oldest(self):
        candidates = [suite("new"), suite("touched"), suite("old"), suite("never")]
        self.assertEqual(self.names(candidates, 1000, ["touched"]), ["touched", "never", "old", "new"])

    def test_it_never_takes_more_than_fits(self):
        candidates = [suite(f"s{i}", 100) for i in range(10)]
        self.assertEqual(len(self.names(candidates, 300)), 6)  # two side by side
        self.assertEqual(self.names([suite("long", 200)], 300), [])  # nothing would run during its end

    def test_a_suite_that_does_not_fit_leaves_its_room_to_the_next(self):
        self.assertEqual(self.names([suite("old", 400), suite("new", 100)], 300), ["new"])

    def test_a_serial_suite_takes_all_lanes(self):
        self.assertEqual(len(self.names([suite(f"s{i}", 100, serial=True) for i in range(5)], 300)), 3)


class RecordTest(unittest.TestCase):
    XML = """<testsuite><testcase name="good" time="3.5" status="run"/>
      <testcase name="bad" time="2" status="fail"><failure message=""/></testcase>
      <testcase name="away" time="0" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
        <system-out>SKIPPED: no Helm</system-out></testcase>
      <testcase name="part" time="1" status="run"><system-out>[  SKIPPED ] 2 tests, listed below:</system-out></testcase></testsuite>"""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = pathlib.Path(self.folder.name, "results.xml")
        self.file.write_text(self.XML)

    def test_a_run_is_noted_with_its_commit_and_others_stay(self):
        record.note_green(self.folder.name, [("good", 3.5)], "abc", 7)
        record.note_green(self.folder.name, [("other", 1)], "def", 8)
        self.assertEqual(record.read_green(self.folder.name),
                         {"good": {"commit": "abc", "at": 7, "seconds": 3.5}, "other": {"commit": "def", "at": 8, "seconds": 1}})

    def test_the_table_has_seconds_and_processor_seconds(self):
        pathlib.Path(self.folder.name, "test-times").mkdir()
        pathlib.Path(self.folder.name, "test-times", "good").write_text("3.50 1.25 0.50\n")
        text = record.table(self.folder.name, [r for r in record.results(self.file) if r.ran])
        self.assertIn("      3.5        1.8  good", text)

    def test_what_was_skipped_is_named_with_its_reason(self):
        lines = record.not_run(record.results(self.file), {"away": ["helm"]})
        self.assertEqual(lines, ["NOT RUN: away: SKIPPED: no Helm (./dev parts helm)", "NOT RUN: 2 tests of part"])


if __name__ == "__main__":
    unittest.main()
