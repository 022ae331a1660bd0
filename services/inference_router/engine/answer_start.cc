#include "services/inference_router/engine/answer_start.h"

#include <algorithm>
#include <array>

namespace tollgate::inference_router {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kDataField = "data:";
constexpr std::array<std::string_view, 3> kOtherFields = {"event:", "id:", "retry:"};

// Whether one of the two starts with the other.
bool Agree(std::string_view a, std::string_view b) { return a.starts_with(b) || b.starts_with(a); }

// Chunks are objects. The end marker is "[DONE]", and some engines send null before the first.
bool MayBeData(std::string_view value) {
  const size_t begin = value.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return true;
  value.remove_prefix(begin);
  return value[0] == '{' || Agree("[DONE]", value) || Agree("null", value);
}

bool MayBeLine(std::string_view line) {
  if (line.empty() || line.front() == ':') return true;  // the end of an event, or a comment
  if (line.starts_with(kDataField)) return MayBeData(line.substr(kDataField.size()));
  return Agree(kDataField, line) ||
         std::ranges::any_of(kOtherFields,
                             [line](std::string_view field) { return Agree(field, line); });
}

}  // namespace

bool MayBeEventStream(std::string_view start) {
  if (start.starts_with(kByteOrderMark)) start.remove_prefix(kByteOrderMark.size());
  if (kByteOrderMark.starts_with(start)) return true;
  while (!start.empty()) {
    const size_t end = start.find_first_of("\r\n");
    if (!MayBeLine(start.substr(0, end))) return false;
    start.remove_prefix(end == std::string_view::npos ? start.size() : end + 1);
  }
  return true;
}

}  // namespace tollgate::inference_router
