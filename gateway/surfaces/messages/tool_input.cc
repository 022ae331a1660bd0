#include "gateway/surfaces/messages/tool_input.h"

#include "common/json/json.h"

namespace tollgate::gateway {

namespace {

// Above the limit for requests: models generate the input, and it is only copied.
constexpr int kMaxInputDepth = 1000;

constexpr std::string_view kWhitespace = " \t\r\n";
constexpr std::string_view kInvalidPrefix = R"({"INVALID_JSON":")";
constexpr std::string_view kInvalidSuffix = R"("})";

}  // namespace

std::string ToolInput(std::string_view arguments) {
  std::string text = json::Unescape(arguments);
  if (text.find_first_not_of(kWhitespace) == std::string::npos) return "{}";
  json::Limits limits;
  limits.max_depth = kMaxInputDepth;
  limits.allow_lone_surrogates = true;
  limits.allow_nul = true;
  const auto document = json::Document::ParseView(text, limits);
  if (document && document->root().is_object()) return text;
  std::string wrapped(kInvalidPrefix);
  wrapped += arguments;
  wrapped += kInvalidSuffix;
  return wrapped;
}

void StreamedToolInput::Add(std::string_view piece, std::string& out) {
  std::string joined;
  if (form_ == Form::kUnknown) {
    pending_whitespace_ += piece;
    const std::string text = json::Unescape(pending_whitespace_);
    const size_t first = text.find_first_not_of(kWhitespace);
    if (first == std::string::npos) return;
    form_ = text[first] == '{' ? Form::kObject : Form::kOther;
    if (form_ == Form::kOther) json::AppendEscaped(out, kInvalidPrefix);
    joined.swap(pending_whitespace_);
    piece = joined;
  }
  if (form_ == Form::kObject) {
    out += piece;
  } else {
    json::AppendEscaped(out, piece);
  }
}

void StreamedToolInput::End(std::string& out) {
  if (form_ == Form::kOther) json::AppendEscaped(out, kInvalidSuffix);
}

}  // namespace tollgate::gateway
