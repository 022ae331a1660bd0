#include "services/cli/top/screen.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/money/money.h"

namespace tollgate::cli {
namespace {

// Counts characters, not bytes.
size_t Columns(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// The first columns of a text. Control characters are replaced, because the text comes from other
// programs.
std::string Cut(const std::string& text, size_t columns) {
  std::string out;
  size_t count = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) != 0x80 && ++count > columns) break;
    out += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  return out;
}

std::string Left(const std::string& text, size_t width) {
  const std::string cut = Cut(text, width);
  return cut + std::string(width - Columns(cut), ' ');
}

std::string Right(const std::string& text, size_t width) {
  const std::string cut = Cut(text, width);
  return std::string(width - Columns(cut), ' ') + cut;
}

std::string Format(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string Seconds(double seconds) {
  if (seconds < 0) return "–";
  if (seconds < 0.01) return Format("%.1f ms", seconds * 1000);
  if (seconds < 1) return Format("%.0f ms", seconds * 1000);
  return Format("%.2f s", seconds);
}

std::string Memory(double bytes) {
  if (bytes >= 1024.0 * 1024 * 1024) return Format("%.1fG", bytes / (1024.0 * 1024 * 1024));
  return Format("%.0fM", bytes / (1024.0 * 1024));
}

std::string Dollars(int64_t nano_usd, double times) {
  const double usd = static_cast<double>(nano_usd) * times / 1e9;
  if (usd != 0 && usd < 0.01) return "$" + Format("%.6f", usd);
  return "$" + (usd < 1000 ? Format("%.2f", usd) : Short(usd));
}

// The lines from top to bottom, none wider than the screen.
class Sheet {
 public:
  explicit Sheet(int width) : width_(static_cast<size_t>(width)) {}

  Sheet& Line() {
    lines_.emplace_back();
    used_ = 0;
    return *this;
  }
  Sheet& Add(const std::string& text, Style style = Style::kPlain) {
    const std::string cut = Cut(text, width_ - used_);
    used_ += Columns(cut);
    if (!cut.empty()) lines_.back().push_back({cut, style});
    return *this;
  }
  // A label and its value, in a field of this many columns.
  Sheet& Field(const std::string& word, const std::string& value, size_t columns, Style style) {
    const size_t least = Columns(word) + 1 + Columns(value);
    Add(word + " ", Style::kDim).Add(value, style);
    return Add(std::string(columns > least ? columns - least : 1, ' '));
  }
  size_t width() const { return width_; }
  size_t left() const { return width_ - used_; }
  std::vector<ScreenLine> Done() { return std::move(lines_); }
  size_t lines() const { return lines_.size(); }

 private:
  const size_t width_;
  size_t used_ = 0;
  std::vector<ScreenLine> lines_;
};

Style WhenAbove(double value, double limit, Style style) {
  return value > limit ? style : Style::kNumber;
}

double RateOf(const Figures& figures, Outcome outcome) {
  return figures.requests_per_second[static_cast<size_t>(outcome)];
}

constexpr size_t kName = 10;   // width of the label at the left
constexpr size_t kField = 17;  // width of a label and its number

void DrawHead(const Figures& figures, const View& view, Sheet& sheet) {
  size_t silent = 0;
  for (const ProcessFigures& process : figures.processes) silent += process.answers ? 0 : 1;
  sheet.Line().Add(" tollgate top ", Style::kTitle).Add("  " + view.time + "  ");
  sheet.Add(std::to_string(figures.processes.size()) +
            (figures.processes.size() == 1 ? " process" : " processes"));
  if (silent > 0) sheet.Add(", " + std::to_string(silent) + " silent", Style::kBad);
  if (figures.seconds > 0) {
    sheet.Add("  rates over " + Format("%.0f s", figures.seconds), Style::kDim);
  } else {
    sheet.Add("  first reading: rates follow", Style::kDim);
  }
  if (view.paused) sheet.Add("  PAUSED", Style::kWarning);
  sheet.Line();
}

void DrawTraffic(const Figures& figures, Sheet& sheet) {
  const auto rate = [&](Outcome outcome) { return RateOf(figures, outcome); };
  sheet.Line().Add(Left("requests", kName), Style::kHeading);
  sheet.Field("all/s", Short(figures.requests()), kField, Style::kNumber);
  sheet.Field("ok/s", Short(rate(Outcome::kOk)), kField, Style::kGood);
  sheet.Field("running", Short(figures.running), kField, Style::kNumber);
  sheet.Field("connections", Short(figures.connections), kField, Style::kNumber);
  sheet.Line().Add(Left("", kName));
  sheet.Field("limited/s", Short(rate(Outcome::kRateLimited)), kField,
              WhenAbove(rate(Outcome::kRateLimited), 0, Style::kWarning));
  sheet.Field("no credit/s", Short(rate(Outcome::kCredit)), kField,
              WhenAbove(rate(Outcome::kCredit), 0, Style::kWarning));
  sheet.Field("4xx/s", Short(rate(Outcome::kClientError)), kField,
              WhenAbove(rate(Outcome::kClientError), 0, Style::kWarning));
  sheet.Field("5xx/s", Short(rate(Outcome::kServerError)), kField,
              WhenAbove(rate(Outcome::kServerError), 0, Style::kBad));
  sheet.Line().Add(Left("tokens", kName), Style::kHeading);
  sheet.Field("in/s", Short(figures.input_tokens_per_second), kField, Style::kNumber);
  sheet.Field("out/s", Short(figures.output_tokens_per_second), kField, Style::kNumber);
  sheet.Field("first p50", Seconds(figures.first_token_p50), kField, Style::kNumber);
  sheet.Field("p99", Seconds(figures.first_token_p99), kField,
              WhenAbove(figures.first_token_p99, 5, Style::kBad));
  sheet.Line().Add(Left("money", kName), Style::kHeading);
  sheet.Field("per s", Dollars(figures.charged_nano_usd_per_second, 1), kField, Style::kNumber);
  sheet.Field("per h", Dollars(figures.charged_nano_usd_per_second, 3600), kField, Style::kNumber);
  sheet.Field("holds", Short(figures.open_holds), kField, Style::kNumber);
  sheet.Field("ledger queue", Short(figures.database_queue), kField,
              WhenAbove(figures.database_queue, 1000, Style::kWarning));
  sheet.Line().Add(Left("", kName));
  const bool late = figures.settlements_wait_seconds > 60;
  sheet.Field("settlements waiting",
              Short(figures.settlements_waiting) +
                  (figures.settlements_wait_seconds >= 1
                       ? " for " + Seconds(figures.settlements_wait_seconds)
                       : ""),
              2 * kField, late ? Style::kBad : Style::kNumber);
  sheet.Field("dead letters", Short(figures.dead_letters), kField,
              WhenAbove(figures.dead_letters, 0, Style::kBad));
}

std::string Bar(double running, double most) {
  constexpr int kCells = 10;
  const int full = std::clamp(static_cast<int>(std::lround(running / most * kCells)),
                              running > 0 ? 1 : 0, kCells);
  std::string bar;
  for (int i = 0; i < kCells; ++i) bar += i < full ? "█" : "░";
  return bar;
}

void DrawEngine(const EngineFigures& engine, size_t name_width, Sheet& sheet) {
  std::string state = "up";
  Style style = Style::kGood;
  if (engine.up == 0) {
    state = "DOWN";
    style = Style::kBad;
  } else if (engine.up < engine.routers) {
    state = std::to_string(engine.up) + "/" + std::to_string(engine.routers) + " up";
    style = Style::kWarning;
  }
  const bool full = engine.most > 0 && engine.running >= engine.most;
  sheet.Line().Add(Left(engine.id, name_width) + " ");
  sheet.Add(Left(state, 7), style);
  const Style load = full ? Style::kWarning : Style::kNumber;
  sheet.Add(engine.most > 0 ? Bar(engine.running, engine.most) : std::string(10, ' '), load);
  sheet.Add(Right(Short(engine.running), 7), load);
  sheet.Add(Left(engine.most > 0 ? "/" + Short(engine.most) : "", 7), Style::kDim);
  sheet.Add(Right(engine.queue < 0 ? "–" : Short(engine.queue), 6),
            WhenAbove(engine.queue, 0, Style::kWarning));
  sheet.Add(Right(Short(engine.requests_per_second), 8), Style::kNumber);
  sheet.Add(Right(Short(engine.failures_per_second), 8),
            WhenAbove(engine.failures_per_second, 0, Style::kBad));
  sheet.Add(Right(Short(engine.tokens_per_second), 8), Style::kNumber);
}

void DrawEngines(const Figures& figures, const View& view, size_t rows, Sheet& sheet) {
  std::vector<EngineFigures> engines = figures.engines;
  Sort(engines, view.order);
  const size_t fixed = 7 + 10 + 7 + 7 + 6 + 8 + 8 + 8 + 1;
  const size_t name_width =
      sheet.width() > fixed + 8 ? std::min<size_t>(sheet.width() - fixed, 40) : 8;
  sheet.Line().Add(Left("engine", name_width) + " " + Left("state", 7) + Left("load", 24) +
                       Right("queue", 6) + Right("req/s", 8) + Right("fail/s", 8) +
                       Right("tok/s", 8),
                   Style::kHeading);
  if (engines.empty()) {
    sheet.Line().Add("no inference router among the sources reports engines", Style::kDim);
    return;
  }
  const size_t shown = std::min(rows, engines.size());
  const size_t first =
      std::min(static_cast<size_t>(std::max(view.first_engine, 0)), engines.size() - shown);
  for (size_t i = first; i < first + shown; ++i) DrawEngine(engines[i], name_width, sheet);
  if (shown < engines.size()) {
    sheet.Line().Add(std::to_string(first + 1) + "–" + std::to_string(first + shown) + " of " +
                         std::to_string(engines.size()) + " engines: arrow keys",
                     Style::kDim);
  }
}

void DrawProcesses(const Figures& figures, size_t rows, Sheet& sheet) {
  sheet.Line().Add(Left("process", 17) + Left("address", 22) + Left("version", 12) +
                       Right("cpu", 7) + Right("memory", 8) + Right("files", 14),
                   Style::kHeading);
  for (const ProcessFigures& process : figures.processes) {
    if (rows-- == 0) return;
    sheet.Line().Add(Left(process.name, 16) + " " + Left(process.address, 21) + " ");
    if (!process.answers) {
      sheet.Add("does not answer", Style::kBad);
      continue;
    }
    const bool short_of_files = process.open_files > 0.8 * process.most_files;
    sheet.Add(Left(process.version, 12) + Right(Format("%.2f", process.cpu), 7) +
                  Right(Memory(process.memory_bytes), 8),
              Style::kNumber);
    sheet.Add(Right(Short(process.open_files) + "/" + Short(process.most_files), 14),
              short_of_files ? Style::kBad : Style::kNumber);
  }
}

}  // namespace

std::string Short(double value) {
  if (value < 0) return "-" + Short(-value);
  if (value == 0) return "0";
  if (value < 10) return value == std::floor(value) ? Format("%.0f", value) : Format("%.2f", value);
  if (value < 100)
    return value == std::floor(value) ? Format("%.0f", value) : Format("%.1f", value);
  if (value < 999.5) return Format("%.0f", value);
  if (value < 9999.5) {
    const auto whole = static_cast<int64_t>(std::llround(value));
    std::string text = std::to_string(whole);
    return text.insert(1, ",");
  }
  if (value < 999'500) return Format(value < 99'950 ? "%.1fk" : "%.0fk", value / 1e3);
  if (value < 999.5e6) return Format(value < 9.995e6 ? "%.2fM" : "%.1fM", value / 1e6);
  return Format("%.1fG", value / 1e9);
}

std::vector<ScreenLine> Draw(const Figures& figures, const View& view) {
  Sheet sheet(std::max(view.width, 20));
  DrawHead(figures, view, sheet);
  DrawTraffic(figures, sheet);
  sheet.Line();
  // Both tables share the lines that their headings, the blank line and the key help leave.
  const int left = view.height - static_cast<int>(sheet.lines()) - 5;
  const auto rows = static_cast<size_t>(std::max(left, 2));
  const size_t processes = figures.processes.size();
  const size_t engines = std::max<size_t>(figures.engines.size(), 1);
  const size_t for_processes =
      engines + processes <= rows
          ? processes
          : std::min(processes, std::max(rows / 3, rows - std::min(rows, engines)));
  DrawEngines(figures, view, rows - std::min(for_processes, rows - 1), sheet);
  sheet.Line();
  DrawProcesses(figures, for_processes, sheet);
  std::vector<ScreenLine> lines = sheet.Done();
  const auto most = static_cast<size_t>(std::max(view.height - 1, 1));
  lines.resize(view.fill ? most : std::min(lines.size(), most));
  Sheet keys(std::max(view.width, 20));
  keys.Line();
  const auto key = [&keys](const char* name, const std::string& what) {
    keys.Add(std::string(" ") + name + " ", Style::kTitle).Add(" " + what + "  ", Style::kDim);
  };
  key("q", "quit");
  key("s", std::string("engines by ") + OrderName(view.order));
  key("p", view.paused ? "resume" : "pause");
  key("↑↓", "engines");
  lines.push_back(keys.Done().front());
  return lines;
}

std::string AsText(const std::vector<ScreenLine>& lines) {
  std::string text;
  for (const ScreenLine& line : lines) {
    std::string one;
    for (const Span& span : line) one += span.text;
    while (one.ends_with(' ')) one.pop_back();
    text += one + "\n";
  }
  return text;
}

}  // namespace tollgate::cli
