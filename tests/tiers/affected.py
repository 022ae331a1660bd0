#!/usr/bin/env python3
"""Prints the suites affected by a change, one per line: affected.py BUILD [PATH…]. Paths are files or folders from the
root; without any it takes what differs from HEAD, or what HEAD changed where nothing does."""
import sys

import suites


def main():
    build, paths = sys.argv[1], [path.removeprefix("./") for path in sys.argv[2:]]
    paths = paths or suites.changed_since("HEAD") or suites.changed_since("HEAD~1") or []
    for suite in suites.affected(suites.suites(build), suites.Targets(build), paths):
        print(suite.name)


if __name__ == "__main__":
    main()
