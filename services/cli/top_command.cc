#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/utc_text.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"
#include "services/cli/top/collect.h"
#include "services/cli/top/screen.h"
#include "services/cli/top/terminal.h"

namespace tollgate::cli {
namespace {

struct TopArguments {
  std::vector<std::string> metrics;
  std::vector<std::string> configs;
  double interval_seconds = 1;
  int window_seconds = 10;
  bool once = false;
};

std::string Home() {
  const char* home = std::getenv("TOLLGATE_HOME");
  return home == nullptr || *home == '\0' ? ".tollgate" : home;
}

// Readings of the last seconds. Rates are computed between the oldest and the newest.
class History {
 public:
  History(std::vector<Source> sources, int64_t window_us, int timeout_ms)
      : sources_(std::move(sources)), window_us_(window_us), timeout_ms_(timeout_ms) {}

  void Read() {
    readings_.push_back(ReadAll(sources_, timeout_ms_));
    time_ = UtcText(SystemClock::Get().WallUs(), UtcPrecision::kSeconds).substr(11, 8);
    // Keeps one reading from before the window, so that rates cover all of it.
    while (readings_.size() > 2 && readings_.back().at_us - readings_[1].at_us >= window_us_) {
      readings_.pop_front();
    }
  }
  Figures Latest() const { return Compare(readings_.front(), readings_.back()); }
  const std::string& time() const { return time_; }
  bool AnyAnswers() const {
    return std::ranges::any_of(readings_.back().processes,
                               [](const auto& process) { return process.second.answers; });
  }

 private:
  const std::vector<Source> sources_;
  const int64_t window_us_;
  const int timeout_ms_;
  std::deque<Reading> readings_;
  std::string time_;
};

void Print(const Options& options, const History& history) {
  View view;
  view.height = 10'000;
  view.fill = false;
  view.time = history.time();
  std::vector<ScreenLine> lines;
  if (!options.json) {
    lines = Draw(history.Latest(), view);
    lines.pop_back();  // the key help
  }
  std::fputs((options.json ? FiguresAsJson(history.Latest()) : AsText(lines)).c_str(), stdout);
  std::fflush(stdout);
}

// Prints the figures of two readings; without `once`, one line of JSON per interval.
void RunForScripts(Invocation& invocation, const TopArguments& arguments, History& history) {
  const auto pause = std::chrono::duration<double>(arguments.interval_seconds);
  history.Read();
  do {
    std::this_thread::sleep_for(pause);
    history.Read();
    Print(invocation.options(), history);
  } while (!arguments.once);
  if (!history.AnyAnswers()) {
    invocation.ReportError("unavailable",
                           "no process returned metrics: give the addresses of "
                           "host.ops_listen with --metrics");
  }
}

// Returns false if there is no terminal.
bool RunLive(const TopArguments& arguments, History& history) {
  Terminal terminal;
  if (!terminal.Open()) return false;
  const auto interval_us = static_cast<int64_t>(arguments.interval_seconds * 1e6);
  View view;
  Figures figures;
  int64_t next_us = 0;
  while (true) {
    const int64_t now_us = SystemClock::Get().MonotonicUs();
    if (now_us >= next_us && !view.paused) {
      history.Read();
      figures = history.Latest();
      view.time = history.time();
      next_us = now_us + interval_us;
    }
    view.width = terminal.width();
    view.height = terminal.height();
    terminal.Show(Draw(figures, view));
    const int64_t wait_us = view.paused ? interval_us : next_us - SystemClock::Get().MonotonicUs();
    switch (terminal.Read(static_cast<int>(std::max<int64_t>(wait_us / 1000, 1)))) {
      case Terminal::Key::kQuit:
        return true;
      case Terminal::Key::kSort:
        view.order = static_cast<EngineOrder>((static_cast<int>(view.order) + 1) % kEngineOrders);
        break;
      case Terminal::Key::kPause:
        view.paused = !view.paused;
        break;
      case Terminal::Key::kUp:
        view.first_engine = std::max(view.first_engine - 1, 0);
        break;
      case Terminal::Key::kDown:
        view.first_engine =
            std::min(view.first_engine + 1, static_cast<int>(figures.engines.size()));
        break;
      case Terminal::Key::kNone:
      case Terminal::Key::kResized:
        break;
    }
  }
}

void RunTop(Invocation& invocation, const TopArguments& arguments) {
  const Inventory inventory = ReadInventory(arguments.configs);
  for (const Finding& finding : inventory.reading) {
    if (finding.verdict != Verdict::kFailure) continue;
    invocation.ReportError("bad_option", finding.subject + ": " + finding.finding);
    return;
  }
  std::vector<Source> sources = SourcesOf(inventory);
  for (const std::string& address : arguments.metrics) sources.push_back({.address = address});
  if (sources.empty()) sources = SourcesOfHome(Home());
  const bool any = std::ranges::any_of(sources, [](const Source& s) { return s.engine.empty(); });
  if (!any) {
    invocation.ReportError("bad_option",
                           "no processes to read: give the addresses of host.ops_listen with "
                           "--metrics, or configuration files that set it with --config");
    return;
  }
  const bool scripted = arguments.once || invocation.options().json;
  const int64_t window_us = scripted ? 0 : int64_t{arguments.window_seconds} * 1'000'000;
  History history(std::move(sources), window_us, /*timeout_ms=*/900);
  if (scripted) return RunForScripts(invocation, arguments, history);
  if (!RunLive(arguments, history)) {
    invocation.ReportError("bad_option",
                           "standard input and output must be a terminal that TERM names; for "
                           "scripts there are --once and --json");
  }
}

}  // namespace

void AddTopCommand(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<TopArguments>();
  CLI::App* top = app.add_subcommand(
      "top", "Requests, tokens, money and engines, live, from the metrics of the processes");
  top->add_option("--metrics", arguments->metrics,
                  "Address of a process's host.ops_listen, host:port; may be repeated")
      ->delimiter(',')
      ->envname("TOLLGATE_METRICS");
  top->add_option("--config", arguments->configs,
                  "Configuration files or folders: their ops_listen, and the engines of the "
                  "catalog for what waits in them");
  top->add_option("--interval", arguments->interval_seconds, "Seconds between two readings")
      ->check(CLI::Range(0.2, 3600.0))
      ->capture_default_str();
  top->add_option("--window", arguments->window_seconds, "Seconds that rates are averaged over")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  top->add_flag("--once", arguments->once,
                "Print once, after one interval, and end; with --json alone: a line per interval");
  top->callback([&invocation, arguments] { RunTop(invocation, *arguments); });
}

}  // namespace tollgate::cli
