#include "common/observability/log_format.h"

#include <cctype>
#include <chrono>
#include <cstdio>

#include "common/base/text.h"

namespace tollgate::log {
namespace {

// Longer values are cut: a log line must stay readable, and below the size up to which the kernel
// keeps writes to a pipe whole (4 KiB) for all but records with many long fields.
constexpr size_t kMaxValueBytes = 1024;
constexpr size_t kMinSecretChars = 6;

bool IsTokenChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' ||
         c == '~' || c == '+' || c == '/' || c == '=';
}
bool IsKeyChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
}

bool StartsWithNoCase(std::string_view text, std::string_view lower) {
  if (text.size() < lower.size()) return false;
  for (size_t i = 0; i < lower.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(text[i])) != lower[i]) return false;
  }
  return true;
}

template <typename Predicate>
size_t RunLength(std::string_view text, Predicate in_run) {
  size_t length = 0;
  while (length < text.size() && in_run(text[length])) ++length;
  return length;
}

// "user:password@" right behind "://": length of the part up to and with the '@', else 0.
size_t UserInfoLength(std::string_view text) {
  const size_t end = text.find_first_of("@/ ?#\"'");
  return end != std::string_view::npos && text[end] == '@' ? end + 1 : 0;
}

// What of the text at this place is a secret: bytes to copy first, bytes to replace after them.
struct Secret {
  size_t keep = 0;
  size_t drop = 0;
};

Secret SecretAt(std::string_view text, bool at_word_start) {
  if (at_word_start && StartsWithNoCase(text, "sk-")) {
    const size_t run = RunLength(text.substr(3), IsKeyChar);
    if (run >= kMinSecretChars) return {3, run};
  }
  if (at_word_start && StartsWithNoCase(text, "bearer")) {
    const size_t gap =
        RunLength(text.substr(6), [](char c) { return c == ' ' || c == ':' || c == '='; });
    const size_t run = gap > 0 ? RunLength(text.substr(6 + gap), IsTokenChar) : 0;
    if (run >= kMinSecretChars) return {6 + gap, run};
  }
  if (text.substr(0, 3) == "://") {
    const size_t user_info = UserInfoLength(text.substr(3));
    if (user_info > 0) return {3, user_info - 1};
  }
  return {};
}

void AppendEscaped(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    const char c = text[0];
    if (length == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

void AppendString(std::string& out, std::string_view text) {
  const std::string redacted = Redact(text);
  std::string_view shown = redacted;
  const bool cut = shown.size() > kMaxValueBytes;
  if (cut) {
    size_t end = kMaxValueBytes;
    while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xC0) == 0x80) --end;
    shown = shown.substr(0, end);
  }
  out += '"';
  AppendEscaped(out, shown);
  if (cut) out += "…";
  out += '"';
}

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarn:
      return "warn";
    case Level::kError:
      return "error";
  }
  return "error";
}

}  // namespace

std::string Redact(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool at_word_start = true;
  while (!text.empty()) {
    const Secret secret = SecretAt(text, at_word_start);
    if (secret.drop > 0) {
      out.append(text.substr(0, secret.keep));
      out += "[redacted]";
      text.remove_prefix(secret.keep + secret.drop);
      at_word_start = false;
      continue;
    }
    at_word_start = !std::isalnum(static_cast<unsigned char>(text[0]));
    out += text[0];
    text.remove_prefix(1);
  }
  return out;
}

std::string Rfc3339(int64_t wall_us) {
  using std::chrono::floor;
  const std::chrono::sys_time<std::chrono::microseconds> time{std::chrono::microseconds(wall_us)};
  const auto day = floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  char text[48];
  std::snprintf(
      text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

std::string FormatLine(Level level, int64_t wall_us, std::string_view process,
                       std::string_view message, std::initializer_list<Field> fields) {
  std::string line;
  line.reserve(256);
  line += "{\"time\":\"";
  line += Rfc3339(wall_us);
  line += "\",\"level\":\"";
  line += LevelName(level);
  line += "\",\"process\":";
  AppendString(line, process);
  line += ",\"message\":";
  AppendString(line, message);
  for (const Field& field : fields) {
    line += ',';
    AppendString(line, field.key);
    line += ':';
    if (field.number) {
      line += field.value;
    } else {
      AppendString(line, field.value);
    }
  }
  line += "}\n";
  return line;
}

}  // namespace tollgate::log
