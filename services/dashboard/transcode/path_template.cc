#include "services/dashboard/transcode/path_template.h"

#include <algorithm>

#include "common/base/ascii.h"

namespace tollgate::transcode {
namespace {

// Characters that RFC 3986 allows in a path segment.
bool IsPathChar(char c) {
  constexpr std::string_view kOthers = "-._~!$&'()*+,;=:@%";
  return IsAlnum(c) || kOthers.find(c) != std::string_view::npos;
}

}  // namespace

class PathTemplate::Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  bool Run(PathTemplate& out) {
    if (!Take('/')) return Fail("must begin with /");
    // The verb follows the last ":" after the last segment.
    const size_t last = rest_.find_last_of("/}");
    const size_t from = last == std::string_view::npos ? 0 : last + 1;
    const std::string_view tail = rest_.substr(from);
    const bool after_variable = from > 0 && rest_[from - 1] == '}';
    const size_t colon = after_variable ? tail.find(':') : tail.rfind(':');
    if (colon != std::string_view::npos) {
      out.verb_ = std::string(tail.substr(colon + 1));
      if (out.verb_.empty()) return Fail("has an empty verb");
      rest_ = rest_.substr(0, from + colon);
    }
    if (!Segments(out, false)) return false;
    return rest_.empty() || Fail("has unexpected text: " + std::string(rest_));
  }
  std::string error;

 private:
  bool Fail(std::string what) {
    if (error.empty()) error = std::move(what);
    return false;
  }
  bool Take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool Segments(PathTemplate& out, bool in_variable) {
    do {
      if (!Segment(out, in_variable)) return false;
    } while (Take('/'));
    return true;
  }
  bool Segment(PathTemplate& out, bool in_variable) {
    if (Take('{')) return in_variable ? Fail("has nested variables") : Variable(out);
    size_t size = 0;
    while (size < rest_.size() && IsPathChar(rest_[size])) ++size;
    const std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    if (text.empty()) return Fail("has an empty segment");
    if (text == "**") {
      if (out.deep_) return Fail("has ** twice");
      out.deep_ = out.segments_.size();
    }
    const Kind kind = text == "**" ? Kind::kDeep : text == "*" ? Kind::kAny : Kind::kLiteral;
    out.segments_.push_back({kind, text});
    return true;
  }
  bool Variable(PathTemplate& out) {
    size_t size = 0;
    while (size < rest_.size() &&
           (IsAlnum(rest_[size]) || rest_[size] == '_' || rest_[size] == '.'))
      ++size;
    if (size == 0) return Fail("has a variable without a name");
    out.names_.emplace_back(rest_.substr(0, size));
    rest_.remove_prefix(size);
    const size_t begin = out.segments_.size();
    if (Take('=')) {
      if (!Segments(out, true)) return false;
    } else {
      out.segments_.push_back({Kind::kAny, "*"});
    }
    out.ranges_.push_back({begin, out.segments_.size()});
    return Take('}') || Fail("has a variable without }");
  }

  std::string_view rest_;
};

BasicResult<PathTemplate, std::string> PathTemplate::Parse(std::string_view text) {
  PathTemplate out;
  Parser parser(text);
  if (!parser.Run(out)) return Fail{"the path template " + std::string(text) + " " + parser.error};
  return out;
}

PathTemplate::Outcome PathTemplate::Match(const std::vector<std::string>& segments,
                                          std::vector<std::string>* values) const {
  std::string_view last = segments.back();
  if (!verb_.empty()) {
    if (last.size() <= verb_.size() || !last.ends_with(verb_) ||
        last[last.size() - verb_.size() - 1] != ':') {
      return Outcome::kMismatch;
    }
    last.remove_suffix(verb_.size() + 1);
    if (last.empty()) return Outcome::kOnlyVerb;
  }
  const size_t fixed = segments_.size() - (deep_ ? 1 : 0);
  if (deep_ ? segments.size() < fixed : segments.size() != fixed) return Outcome::kMismatch;
  const size_t deep_size = segments.size() - fixed;
  const auto segment = [&](size_t i) {
    return i + 1 == segments.size() ? last : std::string_view(segments[i]);
  };
  std::vector<std::string> texts;  // what each segment of the template matches
  size_t at = 0;
  for (const Segment& wanted : segments_) {
    std::string text;
    if (wanted.kind == Kind::kDeep) {
      for (size_t i = 0; i < deep_size; ++i) {
        if (i > 0) text += '/';
        text += segment(at++);
      }
    } else {
      text = segment(at++);
      if (wanted.kind == Kind::kLiteral && text != wanted.literal) return Outcome::kMismatch;
    }
    texts.push_back(std::move(text));
  }
  values->clear();
  for (const Range& range : ranges_) {
    std::string value;
    for (size_t i = range.begin; i < range.end; ++i) {
      if (i > range.begin) value += '/';
      value += texts[i];
    }
    values->push_back(std::move(value));
  }
  return Outcome::kMatch;
}

}  // namespace tollgate::transcode
