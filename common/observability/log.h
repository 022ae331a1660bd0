// Structured logs: one JSON object per line on standard error. Keys, prompts and outputs must never
// be logged; text that looks like a credential is redacted all the same.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tollgate::log {

enum class Level { kDebug, kInfo, kWarn, kError };

struct Field {
  Field(std::string_view key, std::string_view value) : key(key), value(value) {}
  Field(std::string_view key, const char* value) : key(key), value(value) {}
  Field(std::string_view key, const std::string& value) : key(key), value(value) {}
  Field(std::string_view key, int64_t value)
      : key(key), value(std::to_string(value)), number(true) {}
  Field(std::string_view key, int value) : Field(key, static_cast<int64_t>(value)) {}
  Field(std::string_view key, size_t value) : Field(key, static_cast<int64_t>(value)) {}

  std::string_view key;  // empty: the field is omitted
  std::string value;
  bool number = false;
};

void SetLevel(Level level);
bool Enabled(Level level);
// Sets the "process" field of every line, for example "gateway".
void SetProcessName(std::string name);
// Keys with these prefixes are redacted like sk- keys. Call it at the start of a process.
void SetLegacyKeyPrefixes(std::vector<std::string> prefixes);

// From now on a thread writes the lines (line_writer.h), so that a reader that stops reading does
// not block callers. Lines beyond max_queued_bytes (0: 4 MiB) are dropped and counted. If the
// process aborts or crashes, the earlier lines are still written. Without StartWriter, as in
// command line tools and tests, each caller writes its own lines.
void StartWriter(size_t max_queued_bytes = 0);
// Writes the queued lines and ends the thread. Returns false if the reader does not take them
// within a few seconds. Afterwards callers write their own lines again, unless the reader is stuck.
bool StopWriter();
// Waits until all earlier lines are written or the time is over. Call it before _exit.
void Flush(int timeout_ms);

void Write(Level level, std::string_view message, std::initializer_list<Field> fields);
inline void Debug(std::string_view message, std::initializer_list<Field> fields = {}) {
  if (Enabled(Level::kDebug)) Write(Level::kDebug, message, fields);
}
inline void Info(std::string_view message, std::initializer_list<Field> fields = {}) {
  if (Enabled(Level::kInfo)) Write(Level::kInfo, message, fields);
}
inline void Warn(std::string_view message, std::initializer_list<Field> fields = {}) {
  if (Enabled(Level::kWarn)) Write(Level::kWarn, message, fields);
}
inline void Error(std::string_view message, std::initializer_list<Field> fields = {}) {
  if (Enabled(Level::kError)) Write(Level::kError, message, fields);
}

}  // namespace tollgate::log
