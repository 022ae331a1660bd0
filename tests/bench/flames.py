"""Flame graphs of processes under load: samples of perf, drawn by flamegraph.pl."""
import collections
import os
import subprocess

FLAMEGRAPH = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"  # libdevel-nytprof-perl
SAMPLES_PER_SECOND = 997


class Recording:
    """Samples the processes for a while, starting after `after_ms`."""

    def __init__(self, pids, after_ms, window_ms, folder):
        self.data = os.path.join(folder, "perf.data")
        # The sleep covers the load's warm-up, so that only its window is sampled.
        self.perf = subprocess.Popen(
            ["sh", "-c", 'sleep "$1"; exec perf record -q -F "$2" --call-graph dwarf,8192 -p "$3" -o "$4" -- sleep "$5"',
             "sh", str(after_ms / 1e3), str(SAMPLES_PER_SECOND), ",".join(map(str, pids)), self.data, str(window_ms / 1e3)],
            stderr=subprocess.DEVNULL)

    def draw(self, path, title):
        if self.perf.wait() != 0:
            raise SystemExit("perf record failed; is perf allowed here (kernel.perf_event_paranoid)?")
        script = subprocess.run(["perf", "script", "-i", self.data, "--no-inline", "-F", "comm,ip,sym"],
                                check=True, capture_output=True, text=True).stdout
        folded = "".join(f"{stack} {count}\n" for stack, count in sorted(fold(script).items()))
        with open(path, "w") as out:
            subprocess.run([FLAMEGRAPH, "--title", title, "--minwidth", "4", "--hash", "--countname", "samples"],
                           input=folded, stdout=out, check=True, text=True)
        os.remove(self.data)


def fold(script):
    """Counts of equal stacks, "thread;outermost;…;innermost", in the output of perf script."""
    counts = collections.Counter()
    for sample in script.split("\n\n"):
        lines = [line for line in sample.split("\n") if line.strip()]
        if len(lines) < 2:
            continue
        frames = [plain(line.split(None, 1)[1] if " " in line.strip() else "?") for line in lines[1:]]
        counts[";".join([lines[0].strip()] + frames[::-1])] += 1
    return counts


def plain(symbol):
    """A C++ name without its arguments, template arguments and anonymous namespaces."""
    symbol = symbol.replace("(anonymous namespace)::", "").replace("operator()", "call").split(" [clone")[0]
    out, depth = [], 0
    for char in symbol:
        if char in "<([":
            depth += 1
        elif char in ">)]" and depth > 0:
            depth -= 1
        elif depth == 0:
            out.append(char)
    name = "".join(out).strip().split(" ")[-1]  # without the return type
    return name.replace(";", ":") or "?"
