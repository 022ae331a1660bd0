#!/usr/bin/env python3
"""Checks the rules of the source tree that no compiler checks: who may include whom, lengths, banned calls and words,
where files stand, and whether what is cited exists. Prints one line per violation; exit code 1 when there is any."""
import glob
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from rules_alerts import check_alerts  # noqa: E402
from rules_citations import Pages, check_citations  # noqa: E402
from rules_includes import check_includes  # noqa: E402
from rules_layout import (check_error_table, check_pages, check_readmes, check_reason_table, check_services,  # noqa: E402
                          check_sql, check_test_name)
from rules_text import (check_calls, check_cmake, check_envelope, check_lengths, check_ports,  # noqa: E402
                        check_propagation, check_words)
from rules_words import check_grammar, check_money_names, check_phrases  # noqa: E402
from tree import ROOT, read, tracked_files  # noqa: E402

PER_FILE = [check_includes, check_lengths, check_calls, check_propagation, check_words, check_ports, check_cmake, check_envelope,
            check_pages, check_sql, check_test_name, check_phrases, check_grammar, check_money_names]


def main():
    files = tracked_files()
    known = set(files)
    violations = []

    def exists(name):
        if name in known:
            return True
        if "*" in name:
            return bool(glob.glob(os.path.join(ROOT, name), recursive=True))
        return os.path.isdir(os.path.join(ROOT, name))

    pages = Pages(files, read) if "docs/decisions.md" in known else None
    for path in files:
        try:
            text = read(path)
        except UnicodeDecodeError:
            continue  # not text
        for rule in PER_FILE:
            violations += [(path, number, message) for number, message in rule(path, text, exists)]
        if pages:
            violations += [(path, number, message) for number, message in check_citations(path, text, pages)]
    violations += list(check_readmes(known))
    violations += list(check_services(known))
    violations += list(check_error_table(read))
    violations += list(check_reason_table(read))
    violations += list(check_alerts(files, read))
    for path, number, message in violations:
        print(f"{path}:{number}: {message}")
    print(f"{len(files)} files checked, {len(violations)} violations", file=sys.stderr)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
