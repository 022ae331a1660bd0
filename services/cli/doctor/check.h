// The doctor's list of checks. Each checks one thing and says what it found and what to do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tollgate::cli {

enum class Verdict : uint8_t {
  kOk,
  kSkipped,  // could not be checked from here, or was not requested; the finding says why
  kWarning,  // works, but not as docs/operations.md requires
  kFailure,
};
// "ok", "skipped", "warning" or "failure".
const char* VerdictName(Verdict verdict);

// One line of the report. Never contains a secret: texts name files and fields, not their content.
struct Finding {
  Verdict verdict = Verdict::kOk;
  // What was checked: a file, a field, an address, an engine.
  std::string subject;
  std::string finding;
  std::string advice;  // what to do; empty if nothing needs to be done
};
using Findings = std::vector<Finding>;

Finding Ok(std::string subject, std::string finding);
Finding Skipped(std::string subject, std::string reason, std::string advice = "");
Finding Warning(std::string subject, std::string finding, std::string advice);
Finding Failure(std::string subject, std::string finding, std::string advice);

// A check. It may block, but should end within the timeout by itself where it can.
struct Check {
  std::string name;  // kind of check, for example "certificate"; several checks share one
  std::string subject;
  std::function<Findings()> run;
};

struct Line {
  std::string check;
  Finding finding;
};

// Result of RunChecks, which runs all checks at the same time, each on its own thread, and returns
// the findings in the order of the checks. A check that misses the timeout is a failure. Its thread
// keeps running, so the process must exit without waiting for it (all_done is false).
struct Report {
  std::vector<Line> lines;
  bool all_done = true;
};
Report RunChecks(std::vector<Check> checks, int timeout_ms);

int64_t CountOf(const Report& report, Verdict verdict);
// 0: nothing to do, 1: warnings, 2: failures.
int ExitCodeOf(const Report& report);
// {"ok":1,"warnings":0,"failures":0,"skipped":0,"checks":[{"check":…,"subject":…,"result":…,
// "finding":…,"advice":…},…]}
std::string ReportAsJson(const Report& report);
// One line per finding, the advice below it, and the counts. colors: uses escape sequences. quiet:
// leaves out findings that are ok or skipped.
std::string ReportAsText(const Report& report, bool colors, bool quiet);

}  // namespace tollgate::cli
