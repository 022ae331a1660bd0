#include "services/inference_router/engine/engine_text.h"

#include <algorithm>
#include <vector>

#include "common/base/ascii.h"
#include "common/engines/kinds.h"
#include "common/json/json.h"
#include "services/inference_router/engine/request_members.h"

namespace tollgate::inference_router {
namespace {

constexpr std::string_view kNul = "\\u0000";
constexpr std::string_view kReplacement = "\\ufffd";
// The start of an escape in text that is escaped twice.
constexpr std::string_view kInnerEscape = "\\\\u";

// The code unit of the escape \uXXXX at `at`, or -1.
int UnitAt(std::string_view text, size_t at) {
  if (at + kNul.size() > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
  int unit = 0;
  for (size_t i = at + 2; i < at + kNul.size(); ++i) {
    const int digit = HexValue(text[i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

bool IsHigh(int unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool IsLow(int unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

// Replaces escapes in JSON text, which may be malformed. Replacements keep the length. Returns
// whether anything was replaced.
bool ReplaceEscapes(std::string& text, bool nul, bool surrogates) {
  bool any = false;
  for (size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at)) {
    const int unit = UnitAt(text, at);
    if (unit < 0) {
      at += 2;
      continue;
    }
    if (IsHigh(unit) && IsLow(UnitAt(text, at + kNul.size()))) {
      at += 2 * kNul.size();
      continue;
    }
    if ((nul && unit == 0) || (surrogates && (IsHigh(unit) || IsLow(unit)))) {
      text.replace(at, kNul.size(), kReplacement);
      any = true;
    }
    at += kNul.size();
  }
  return any;
}

// The code unit at `at` of the escape \\uXXXX in text that is escaped twice, or -1.
int InnerUnitAt(std::string_view text, size_t at) {
  return text.substr(at).starts_with(kInnerEscape) ? UnitAt(text, at + 1) : -1;
}

// Whether, in text that is escaped twice, a character of an escape may itself be written as an
// escape. No common JSON writer does that.
bool HasSpelledInnerEscape(std::string_view members) {
  // All characters of an escape are ASCII.
  if (members.find(R"(\u00)") == std::string_view::npos) return false;
  for (size_t at = members.find(kInnerEscape); at != std::string_view::npos;
       at = members.find(kInnerEscape, at + 1)) {
    size_t digit = at + kInnerEscape.size();
    const size_t end = std::min(digit + 4, members.size());
    while (digit < end && HexValue(members[digit]) >= 0) ++digit;
    if (digit < end && members.substr(digit).starts_with(R"(\u00)")) return true;
  }
  for (const char* written :
       {R"(\\\u0075)", R"(\u005cu)", R"(\u005Cu)", R"(\u005c\u0075)", R"(\u005C\u0075)"}) {
    if (members.find(written) != std::string_view::npos) return true;
  }
  return false;
}

struct Edit {
  size_t offset, length;
  std::string literal;
};

void FitArguments(json::Value function, bool nul, std::vector<Edit>& edits) {
  const json::Value arguments = function.Find("arguments");
  if (!arguments.is_string()) return;
  std::string inner = arguments.string();
  if (!ReplaceEscapes(inner, nul, true)) return;
  edits.push_back({arguments.offset(), arguments.raw().size(), json::Quoted(inner)});
}

// The arguments of tool calls in the messages, as edits of the document in their order.
std::vector<Edit> FitToolCalls(const json::Document& document, bool nul) {
  std::vector<Edit> edits;
  for (const json::Value message : document.root().Find("messages")) {
    for (const json::Value member : message) {
      if (member.KeyEquals("function_call")) FitArguments(member, nul, edits);
      if (!member.KeyEquals("tool_calls")) continue;
      for (const json::Value call : member) FitArguments(call.Find("function"), nul, edits);
    }
  }
  return edits;
}

// Empty if nothing needs to be replaced.
std::optional<std::string> FitInner(std::string_view members, bool nul) {
  if (!MayHoldInnerEscape(members, nul)) return std::nullopt;
  const auto document = ParseMembers(members);
  if (!document.ok()) return std::nullopt;
  const std::vector<Edit> edits = FitToolCalls(*document, nul);
  if (edits.empty()) return std::nullopt;
  const std::string_view text = document->text();
  std::string out;
  out.reserve(text.size());
  size_t at = 1;  // after the brace
  for (const Edit& edit : edits) {
    out += text.substr(at, edit.offset - at);
    out += edit.literal;
    at = edit.offset + edit.length;
  }
  out += text.substr(at, text.size() - 1 - at);
  return out;
}

}  // namespace

// Exact for common texts: a path such as C:\\udev, or a character of two escapes.
bool MayHoldInnerEscape(std::string_view members, bool nul) {
  if (HasSpelledInnerEscape(members)) return true;
  constexpr size_t kSize = kInnerEscape.size() + 4;
  size_t at = members.find(kInnerEscape);
  while (at != std::string_view::npos) {
    const int unit = InnerUnitAt(members, at);
    const bool is_escaped = at > 0 && members[at - 1] == '\\';
    if (IsHigh(unit) && !is_escaped && IsLow(InnerUnitAt(members, at + kSize))) {
      at = members.find(kInnerEscape, at + 2 * kSize);
      continue;
    }
    if (IsHigh(unit) || IsLow(unit) || (nul && unit == 0)) return true;
    at = members.find(kInnerEscape, at + 1);
  }
  return false;
}

std::optional<std::string> FitText(catalog::v1::EngineKind kind, std::string_view members) {
  const bool nul = !engines::Of(kind).takes_nul;
  std::optional<std::string> fitted = FitInner(members, nul);
  if (!nul || members.find(kNul) == std::string_view::npos) return fitted;
  std::string direct = fitted ? *std::move(fitted) : std::string(members);
  const bool any = ReplaceEscapes(direct, true, false);
  if (any || fitted) return direct;
  return std::nullopt;
}

std::string_view TextFitter::Fit(catalog::v1::EngineKind kind, std::string_view members) {
  Made& made = made_[engines::Of(kind).takes_nul ? 1 : 0];
  if (!made.done) {
    made.text = FitText(kind, members);
    made.done = true;
  }
  return made.text ? std::string_view(*made.text) : members;
}

}  // namespace tollgate::inference_router
