#include "services/cli/doctor/check.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "common/base/text.h"
#include "common/json/writer.h"

namespace tollgate::cli {
namespace {

// Shared with the threads, which may outlive the report.
struct Slots {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::optional<Findings>> found;
};

// Answers of servers may contain escape sequences, which must not reach the terminal.
std::string ForTerminal(const std::string& text) { return WithoutInvisible(text, ' '); }

// Wraps the text at 100 columns, with all lines after the first indented.
std::string Wrapped(const std::string& text, size_t indent) {
  constexpr size_t kColumns = 100;
  std::string out, line;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && indent + line.size() + 1 + word.size() > kColumns) {
      out += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
    at = end + 1;
  }
  return out + line;
}

const char* ColorOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "\033[32m";
    case Verdict::kSkipped:
      return "\033[2m";
    case Verdict::kWarning:
      return "\033[33m";
    case Verdict::kFailure:
      return "\033[1;31m";
  }
  return "";
}

std::string Counted(int64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kSkipped:
      return "skipped";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kFailure:
      return "failure";
  }
  return "";
}

Finding Ok(std::string subject, std::string finding) {
  return {Verdict::kOk, std::move(subject), std::move(finding), ""};
}
Finding Skipped(std::string subject, std::string reason, std::string advice) {
  return {Verdict::kSkipped, std::move(subject), std::move(reason), std::move(advice)};
}
Finding Warning(std::string subject, std::string finding, std::string advice) {
  return {Verdict::kWarning, std::move(subject), std::move(finding), std::move(advice)};
}
Finding Failure(std::string subject, std::string finding, std::string advice) {
  return {Verdict::kFailure, std::move(subject), std::move(finding), std::move(advice)};
}

Report RunChecks(std::vector<Check> checks, int timeout_ms) {
  const auto slots = std::make_shared<Slots>();
  slots->found.resize(checks.size());
  for (size_t i = 0; i < checks.size(); ++i) {
    std::thread([slots, i, run = checks[i].run] {
      Findings found = run();
      const std::lock_guard lock(slots->mutex);
      slots->found[i] = std::move(found);
      slots->changed.notify_all();
    }).detach();
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  Report report;
  std::unique_lock lock(slots->mutex);
  slots->changed.wait_until(lock, until, [&] {
    return std::ranges::all_of(slots->found, [](const auto& one) { return one.has_value(); });
  });
  for (size_t i = 0; i < checks.size(); ++i) {
    if (!slots->found[i]) {
      report.all_done = false;
      report.lines.push_back(
          {checks[i].name,
           Failure(checks[i].subject, "not done within " + std::to_string(timeout_ms / 1000) + " s",
                   "find out what does not answer, or give it more time with --timeout")});
      continue;
    }
    for (Finding& finding : *slots->found[i]) {
      report.lines.push_back({checks[i].name, std::move(finding)});
    }
  }
  return report;
}

int64_t CountOf(const Report& report, Verdict verdict) {
  return std::ranges::count_if(report.lines,
                               [&](const Line& line) { return line.finding.verdict == verdict; });
}

int ExitCodeOf(const Report& report) {
  if (CountOf(report, Verdict::kFailure) > 0) return 2;
  return CountOf(report, Verdict::kWarning) > 0 ? 1 : 0;
}

std::string ReportAsJson(const Report& report) {
  const auto line_json = [](const Line& line) {
    return json::Writer()
        .Text("check", line.check)
        .Text("subject", line.finding.subject)
        .Text("result", VerdictName(line.finding.verdict))
        .Text("finding", line.finding.finding)
        .Text("advice", line.finding.advice)
        .Done();
  };
  return json::Writer()
             .Number("ok", CountOf(report, Verdict::kOk))
             .Number("warnings", CountOf(report, Verdict::kWarning))
             .Number("failures", CountOf(report, Verdict::kFailure))
             .Number("skipped", CountOf(report, Verdict::kSkipped))
             .Raw("checks", json::WriteArray(report.lines, line_json))
             .Done() +
         "\n";
}

std::string ReportAsText(const Report& report, bool colors, bool quiet) {
  constexpr size_t kIndent = 9;  // "warning  "
  size_t width = 0;
  for (const Line& line : report.lines) width = std::max(width, line.check.size());
  std::string out;
  for (const Line& line : report.lines) {
    const Finding& finding = line.finding;
    if (quiet && (finding.verdict == Verdict::kOk || finding.verdict == Verdict::kSkipped)) {
      continue;
    }
    std::string word = VerdictName(finding.verdict);
    word.resize(kIndent, ' ');
    out += colors ? ColorOf(finding.verdict) + word + "\033[0m" : word;
    std::string name = line.check;
    name.resize(width + 2, ' ');
    const size_t indent = kIndent + name.size();
    out += name + Wrapped(ForTerminal(finding.subject + ": " + finding.finding), indent) + "\n";
    if (!finding.advice.empty()) {
      out +=
          std::string(indent, ' ') + "→ " + Wrapped(ForTerminal(finding.advice), indent + 2) + "\n";
    }
  }
  const int64_t failures = CountOf(report, Verdict::kFailure);
  const int64_t warnings = CountOf(report, Verdict::kWarning);
  out += Counted(failures, "failure", "failures") + ", " +
         Counted(warnings, "warning", "warnings") + ", " +
         std::to_string(CountOf(report, Verdict::kOk)) + " ok, " +
         std::to_string(CountOf(report, Verdict::kSkipped)) + " skipped\n";
  return out;
}

}  // namespace tollgate::cli
