// The doctor's list of checks: each looks at one thing and says what it found and what to do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tollgate::cli {

enum class Verdict : uint8_t {
  kOk,
  kSkipped,  // it could not be looked at from here, or was not asked for; the finding says why
  kWarning,  // it works, but not as docs/operations.md asks
  kFailure,
};
// ok, skipped, warning or failure.
const char* VerdictName(Verdict verdict);

// One line of the report. Never holds a secret: texts name files and fields, not their content.
struct Finding {
  Verdict verdict = Verdict::kOk;
  // What was looked at: a file, a field, an address, an engine.
  std::string subject;
  std::string finding;
  std::string advice;  // what to do; empty where nothing is to be done
};
using Findings = std::vector<Finding>;

Finding Ok(std::string subject, std::string finding);
Finding Skipped(std::string subject, std::string reason, std::string advice = "");
Finding Warning(std::string subject, std::string finding, std::string advice);
Finding Failure(std::string subject, std::string finding, std::string advice);

// A check may block; it ends within the time-out by its own means where it can.
struct Check {
  std::string name;  // of its kind, for example "certificate"; several checks share one
  std::string subject;
  std::function<Findings()> run;
};

struct Line {
  std::string check;
  Finding finding;
};

// Runs all at the same time, each on a thread of its own, and returns their findings in the order
// of the checks. A check that is not done within the time-out is a failure; its thread is left
// behind, and the process must end without waiting for it (all_done false).
struct Report {
  std::vector<Line> lines;
  bool all_done = true;
};
Report RunChecks(std::vector<Check> checks, int timeout_ms);

int64_t CountOf(const Report& report, Verdict verdict);
// 0: nothing to do; 1: warnings; 2: failures.
int ExitCodeOf(const Report& report);
// {"ok":1,"warnings":0,"failures":0,"skipped":0,"checks":[{"check":…,"subject":…,"result":…,
// "finding":…,"advice":…},…]}
std::string ReportAsJson(const Report& report);
// A line for each finding, the advice below, and the counts. colors: escape sequences for a
// terminal. quiet: without what is ok or skipped.
std::string ReportAsText(const Report& report, bool colors, bool quiet);

}  // namespace tollgate::cli
