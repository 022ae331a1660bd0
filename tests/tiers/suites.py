"""The suites of ctest and the targets of CMake, as both describe themselves in a build folder."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Changes of these may change any program.
EVERYTHING = ("CMakeLists.txt", "CMakePresets.json", "cmake/", "common/pch/", "deploy/packages.txt")


class Suite:
    """One entry of ctest."""

    def __init__(self, entry):
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        labels = properties.get("LABELS", [])
        self.name = entry["name"]
        self.labels = {label for label in labels if "=" not in label}
        self.reads = [label.partition("=")[2] for label in labels if label.startswith("reads=")]
        self.needs = [label.partition("=")[2] for label in labels if label.startswith("needs=")]
        self.seconds = float(properties.get("COST", 2))
        self.processors = int(properties.get("PROCESSORS", 1))
        self.serial = bool(properties.get("RUN_SERIAL"))
        # A fixture is not a separate suite: ctest runs it before the suites that need it.
        self.fixture = "FIXTURES_SETUP" in properties


def suites(build, arguments=()):
    """The suites that ctest selects with these arguments, in its order."""
    output = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1", *arguments], check=True,
                            capture_output=True, text=True).stdout
    return [Suite(entry) for entry in json.loads(output)["tests"]]


class Targets:
    """What each target of CMake is made of (its file API, which `./dev build` asks for)."""

    def __init__(self, build):
        reply = pathlib.Path(build, ".cmake/api/v1/reply")
        index = json.loads(max(reply.glob("index-*.json")).read_text())
        model = json.loads((reply / index["reply"]["codemodel-v2"]["jsonFile"]).read_text())["configurations"][0]
        files = [json.loads((reply / target["jsonFile"]).read_text()) for target in model["targets"]]
        names = {target["id"]: target["name"] for target in files}
        self.folder = {t["name"]: t["paths"]["source"] for t in files}
        self.needs = {t["name"]: {names[d["id"]] for d in t.get("dependencies", []) if d["id"] in names} for t in files}
        # Sources of generated code have absolute paths, or ones in the build folder.
        self.sources = {t["name"]: {s["path"] for s in t.get("sources", []) if not s.get("isGenerated")} for t in files}

    def closure(self, name):
        """This target and all that it needs."""
        found, todo = set(), [name]
        while todo:
            one = todo.pop()
            if one in found or one not in self.needs:
                continue
            found.add(one)
            todo += self.needs[one]
        return found

    def of_path(self, path):
        """The targets that a file belongs to: those that compile it; else those with sources in its folder, for headers
        and scripts; else those of the nearest folder above with any. A folder stands for all that is in it."""
        path = path.rstrip("/")
        parts = path.split("/")
        if parts[:2] == ["proto", "tollgate"] and len(parts) > 2:
            return {f"tollgate_proto_{parts[2]}"}
        if (ROOT / path).is_dir():
            return {name for name, folder in self.folder.items()
                    if (folder + "/").startswith(path + "/") or any(s.startswith(path + "/") for s in self.sources[name])}
        compiled = {name for name, sources in self.sources.items() if path in sources}
        if compiled:
            return compiled
        folder = os.path.dirname(path)
        beside = {name for name, sources in self.sources.items() if any(os.path.dirname(s) == folder for s in sources)}
        if beside and path.endswith(".h"):
            return beside
        while folder:
            of_folder = {name for name, one in self.folder.items() if one == folder}
            if of_folder | beside:
                return of_folder | beside
            folder = os.path.dirname(folder)
        return set()


def affected(all_suites, targets, paths):
    """The suites whose programs, scripts or other files one of these paths (files or folders, from the root) belongs to."""
    if any(path == whole or whole.endswith("/") and path.startswith(whole) for path in paths for whole in EVERYTHING):
        return list(all_suites)
    changed = set().union(*(targets.of_path(path) for path in paths)) if paths else set()

    def reads(suite):
        return any(path == one or path.startswith(one + "/") or one.startswith(path.rstrip("/") + "/")
                   for one in suite.reads for path in paths)

    return [suite for suite in all_suites if reads(suite) or targets.closure(suite.name) & changed]


def changed_since(commit, root=ROOT):
    """The files that differ from a commit, with those that git does not know yet; None: it is not in this repository."""
    difference = subprocess.run(["git", "diff", "--name-only", commit], cwd=root, capture_output=True, text=True)
    if difference.returncode:
        return None
    new = subprocess.run(["git", "ls-files", "-o", "--exclude-standard"], cwd=root, capture_output=True, text=True)
    return sorted(set((difference.stdout + new.stdout).split("\n")) - {""})
