#include "common/observability/log_format.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <list>
#include <mutex>
#include <utility>

#include "common/base/text.h"
#include "common/base/utc_text.h"
#include "common/json/writer.h"

namespace tollgate::log {
namespace {

// Longer values are truncated, so that lines stay readable and nearly always below PIPE_BUF (4
// KiB), up to which writes to a pipe are atomic.
constexpr size_t kMaxValueBytes = 1024;
constexpr size_t kMinSecretChars = 6;

// In lower case. A replaced list is kept, since another thread may be reading it.
std::atomic<const std::vector<std::string>*> g_prefixes{nullptr};

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool IsTokenChar(char c) {
  return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.' || c == '~' || c == '+' ||
         c == '/' || c == '=';
}
bool IsKeyChar(char c) { return IsAlphanumeric(c) || c == '-' || c == '_'; }

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

// Length of the user info after "://", such as "user:password@", with its '@'; 0 if there is none.
size_t UserInfoLength(std::string_view text) {
  const size_t end = text.find_first_of("@/ ?#\"'");
  return end != std::string_view::npos && text[end] == '@' ? end + 1 : 0;
}

// A secret at the start of a text: bytes to copy before it, and bytes to replace.
struct Secret {
  size_t keep = 0;
  size_t drop = 0;
};

Secret KeyAt(std::string_view text, std::string_view prefix) {
  if (!StartsWithNoCase(text, prefix)) return {};
  const size_t run = RunLength(text.substr(prefix.size()), IsKeyChar);
  return run >= kMinSecretChars ? Secret{prefix.size(), run} : Secret{};
}

Secret SecretAt(std::string_view text, bool at_word_start) {
  if (at_word_start) {
    if (const Secret key = KeyAt(text, "sk-"); key.drop > 0) return key;
    if (const auto* prefixes = g_prefixes.load(std::memory_order_acquire)) {
      for (const std::string& prefix : *prefixes) {
        if (const Secret key = KeyAt(text, prefix); key.drop > 0) return key;
      }
    }
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

// Prepares a message or a value for the log: redacts it, makes it valid UTF-8 and limits its
// length.
std::string Shown(std::string_view text) {
  const std::string redacted = Redact(text);
  std::string shown = ToValidUtf8(redacted, kMaxValueBytes);
  std::replace(shown.begin(), shown.end(), '\x7f', '?');  // JSON does not escape DEL
  if (redacted.size() > kMaxValueBytes) shown += "…";
  return shown;
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

void SetRedactedPrefixes(std::vector<std::string> prefixes) {
  std::erase(prefixes, "");
  for (std::string& prefix : prefixes) {
    for (char& c : prefix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  static std::mutex mutex;
  static std::list<std::vector<std::string>> kept;
  std::lock_guard lock(mutex);
  kept.push_back(std::move(prefixes));
  g_prefixes.store(&kept.back(), std::memory_order_release);
}

std::string Redact(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool at_word_start = true;
  size_t copied = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const Secret secret =
        at_word_start || c == ':' ? SecretAt(text.substr(i), at_word_start) : Secret{};
    if (secret.drop > 0) {
      out.append(text.substr(copied, i + secret.keep - copied));
      out += "[redacted]";
      i += secret.keep + secret.drop;
      copied = i;
      at_word_start = false;
      continue;
    }
    at_word_start = !IsAlphanumeric(c);
    ++i;
  }
  out.append(text.substr(copied));
  return out;
}

std::string FormatLine(Level level, int64_t wall_us, std::string_view process,
                       std::string_view message, std::initializer_list<Field> fields) {
  json::Writer line;
  line.Text("time", UtcText(wall_us, UtcPrecision::kMicroseconds))
      .Text("level", LevelName(level))
      .Text("process", Shown(process))
      .Text("message", Shown(message));
  for (const Field& field : fields) {
    if (field.key.empty()) continue;
    if (field.number) {
      line.Raw(field.key, field.value);
    } else {
      line.Text(field.key, Shown(field.value));
    }
  }
  return line.Done() + "\n";
}

}  // namespace tollgate::log
