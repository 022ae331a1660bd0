// Path templates of google.api.http: "/admin/v1/{name=workspaces/*/keys/*}:revoke".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace tollgate::transcode {

class PathTemplate {
 public:
  // A segment is "*", "**", a literal or {field.path[=segments]}. "**" is allowed once.
  static BasicResult<PathTemplate, std::string> Parse(std::string_view text);

  enum class Outcome {
    kMatch,
    kMismatch,
    kOnlyVerb,  // the last segment is only ":" and this template's verb
  };
  // segments: a decoded path, split at "/". Empty segments count and match "*". On a match, *values
  // gets the values of variables().
  Outcome Match(const std::vector<std::string>& segments, std::vector<std::string>* values) const;

  // Field paths of the variables, in order.
  const std::vector<std::string>& variables() const { return names_; }
  const std::string& verb() const { return verb_; }

 private:
  enum class Kind { kLiteral, kAny, kDeep };
  struct Segment {
    Kind kind;
    std::string literal;
  };
  struct Range {
    size_t begin, end;  // in segments_
  };
  class Parser;

  std::vector<Segment> segments_;
  std::vector<std::string> names_;
  std::vector<Range> ranges_;  // one per variable
  std::optional<size_t> deep_;
  std::string verb_;
};

}  // namespace tollgate::transcode
