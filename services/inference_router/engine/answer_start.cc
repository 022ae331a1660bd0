#include "services/inference_router/engine/answer_start.h"

#include <algorithm>

#include "common/base/ascii.h"

namespace tollgate::inference_router {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kDataField = "data:";

// Whether one of the two starts with the other.
bool Agree(std::string_view a, std::string_view b) { return a.starts_with(b) || b.starts_with(a); }

// Chunks are objects. The end marker is "[DONE]", and some engines send null before the first.
bool MayBeData(std::string_view value) {
  const size_t begin = value.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return true;
  value.remove_prefix(begin);
  return value[0] == '{' || Agree("[DONE]", value) || Agree("null", value);
}

// in_data: whether its event has a line of data already, whose value may continue in any way.
bool MayBeLine(std::string_view line, bool& in_data) {
  if (line.front() == ':') return true;  // a comment
  if (line.starts_with(kDataField)) {
    const bool possible = in_data || MayBeData(line.substr(kDataField.size()));
    in_data = true;
    return possible;
  }
  // Readers ignore fields that they do not know.
  const std::string_view field = line.substr(0, line.find(':'));
  return std::ranges::all_of(field, [](char c) { return IsAlnum(c) || c == '_' || c == '-'; });
}

}  // namespace

bool MayBeEventStream(std::string_view start) {
  if (start.starts_with(kByteOrderMark)) start.remove_prefix(kByteOrderMark.size());
  if (kByteOrderMark.starts_with(start)) return true;
  bool in_data = false;
  while (!start.empty()) {
    const size_t end = start.find_first_of("\r\n");
    const std::string_view line = start.substr(0, end);
    if (line.empty()) {
      in_data = false;  // the end of an event
    } else if (!MayBeLine(line, in_data)) {
      return false;
    }
    if (end == std::string_view::npos) break;
    start.remove_prefix(end + (start.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  return true;
}

}  // namespace tollgate::inference_router
