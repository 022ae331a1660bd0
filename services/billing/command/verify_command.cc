// tollgate-billing verify.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>

#include "common/json/json.h"
#include "services/billing/archive/verify_archive.h"
#include "services/billing/command/place.h"
#include "services/billing/verify/verify.h"
#include "services/billing/verify/verify_checkpoints.h"

namespace tollgate::billing {
namespace {

std::atomic<bool> stop_asked = false;

// Ends a verification in order: it keeps its progress and removes its temporary files.
void StopOnSignals() {
  for (const int signal : {SIGINT, SIGTERM}) {
    ::signal(signal, [](int) { stop_asked = true; });
  }
}

// Failures do not matter: the verification is only less polite then.
void LowerPriority() {
  constexpr int kIoProcess = 1;
  constexpr int kIoIdle = 3 << 13;
  (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);
  (void)::setpriority(PRIO_PROCESS, 0, 19);
  (void)::syscall(SYS_ioprio_set, kIoProcess, 0, kIoIdle);
}

// Progress: one updated line on a terminal, one line per minute in a file.
class Meter {
 public:
  bool Show(const VerifyReport& report, const std::string& workspace) {
    const auto now = std::chrono::steady_clock::now();
    const auto pause = terminal_ ? std::chrono::seconds(1) : std::chrono::seconds(60);
    if (stop_asked || now - shown_ < pause) return !stop_asked;
    shown_ = now;
    const int64_t ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(now - begin_).count() + 1;
    std::fprintf(stderr,
                 "%sverify: %lld entries, %lld holds, %lld workspaces, %zu violations, %lld"
                 " entries/s; in %s%s",
                 terminal_ ? "\r\033[K" : "", static_cast<long long>(report.entries),
                 static_cast<long long>(report.holds), static_cast<long long>(report.workspaces),
                 report.violations.size(), static_cast<long long>(report.entries * 1000 / ms),
                 workspace.c_str(), terminal_ ? "" : "\n");
    return true;
  }
  void End() const {
    if (terminal_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_ = begin_;
};

void Print(const VerifyReport& report, bool json) {
  const auto number = [](int64_t value) { return static_cast<long long>(value); };
  if (!json) {
    std::printf("%s: %lld entries, %lld holds and %lld usage records of %lld workspaces\n",
                report.ok() ? "The ledger is consistent" : "LEDGER VIOLATIONS FOUND",
                number(report.entries), number(report.holds), number(report.usage_records),
                number(report.workspaces));
    for (const std::string& violation : report.violations) {
      std::printf("  %s\n", violation.c_str());
    }
    return;
  }
  std::string list;
  for (const std::string& violation : report.violations) {
    if (!list.empty()) list += ',';
    json::AppendQuoted(list, violation);
  }
  std::printf(
      "{\"ok\":%s,\"workspaces\":%lld,\"entries\":%lld,\"holds\":%lld,\"usage_records\":%lld,"
      "\"commands\":%lld,\"violations\":[%s]}\n",
      report.ok() ? "true" : "false", number(report.workspaces), number(report.entries),
      number(report.holds), number(report.usage_records), number(report.commands), list.c_str());
}

}  // namespace

void AddVerify(CLI::App& app, int& exit_code) {
  CLI::App& command =
      *app.add_subcommand("verify", "Verify the ledger from its database while billing is serving");
  auto place = std::make_shared<Place>();
  auto options = std::make_shared<VerifyOptions>();
  auto json = std::make_shared<bool>(false);
  auto checkpoints = std::make_shared<std::string>();
  auto key = std::make_shared<std::string>();
  AddPlace(command, *place);
  command.add_option("-w,--workspace", options->workspace, "Only this workspace; default: all");
  command.add_option("--state", options->state_file,
                     "Keeps the progress in this file; a run with the same file continues there");
  auto* file = command.add_option("--checkpoints", *checkpoints,
                                  "Also compare with the signed checkpoints of this file");
  auto* public_key =
      command.add_option("--checkpoint-key", *key, "PEM file with the public key of checkpoints");
  auto archive = std::make_shared<std::string>();
  command.add_option("--archive", *archive,
                     "Also verify the archived months, whose files are in this folder");
  file->needs(public_key);
  public_key->needs(file);
  command.add_flag("--json", *json, "Print JSON");
  auto low_priority = std::make_shared<bool>(false);
  command.add_flag(
      "--low-priority", *low_priority,
      "Yield to all other processes, and end with the process that has started this one");
  command.callback([place, options, json, checkpoints, key, archive, low_priority, &exit_code] {
    if (*low_priority) LowerPriority();
    StopOnSignals();
    const auto connection = Connect(*place, /*read_only=*/true, &exit_code);
    if (connection == nullptr) return;
    // Read before the ledger, which may only be ahead of the checkpoints.
    VerifyReport anchored;
    std::optional<Anchors> anchors;
    if (!checkpoints->empty()) {
      auto read = Anchors::Read(*checkpoints, *key, anchored);
      if (!read.ok()) {
        exit_code = Failed(read.error());
        return;
      }
      anchors = std::move(*read);
    }
    Meter meter;
    options->overdue_holds = true;
    options->progress = [&meter](const VerifyReport& report, const std::string& workspace) {
      return meter.Show(report, workspace);
    };
    VerifyReport archived;
    if (!archive->empty()) {
      auto done = VerifyArchive(*connection, *archive, archived, options->progress);
      if (!done.ok()) {
        exit_code = Failed(done.error().message);
        return;
      }
      options->archive_verified = archived.ok();
    }
    auto report = VerifyLedger(*connection, *options);
    meter.End();
    if (!report.ok()) {
      exit_code = Failed(report.error().message);
      return;
    }
    if (anchors) {
      if (auto done = anchors->Compare(*connection, options->workspace, anchored); !done.ok()) {
        exit_code = Failed(done.error().message);
        return;
      }
      report->violations.insert(report->violations.begin(), anchored.violations.begin(),
                                anchored.violations.end());
    }
    report->entries += archived.entries;
    report->violations.insert(report->violations.end(), archived.violations.begin(),
                              archived.violations.end());
    Print(*report, *json);
    exit_code = report->ok() ? 0 : 1;
  });
}

}  // namespace tollgate::billing
