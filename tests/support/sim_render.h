// The simulated engine's JSON: stream events, bodies, errors. Cheap per token: the constant part of
// a stream's events is built once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/sim_plan.h"

namespace tollgate::test {

// Iterates over the tokens of one choice.
class SimCursor {
 public:
  explicit SimCursor(const SimChoice* choice) : choice_(choice) {}
  bool at_end() const { return segment_ >= choice_->segments.size(); }
  const SimSegment& segment() const { return choice_->segments[segment_]; }
  const SimChoice& choice() const { return *choice_; }
  bool opens_tool() const { return segment().kind == SimSegment::Kind::kTool && offset_ == 0; }
  // The token's text; "" for the one that opens a tool call.
  std::string_view text() const;
  // The same as the inside of a JSON string literal; valid until the next call.
  std::string_view escaped();
  void Advance();
  // Tokens and characters before this one.
  int64_t emitted() const { return emitted_; }
  int64_t characters() const { return characters_; }

 private:
  const SimChoice* choice_;
  size_t segment_ = 0;
  int64_t offset_ = 0;
  int64_t emitted_ = 0;
  int64_t characters_ = 0;
  std::string scratch_;
};

class SimRenderer {
 public:
  SimRenderer(const SimPlan* plan, const std::string& id, int64_t created_s, bool usage_details);

  // Appends whole events ("data: …\n\n").
  void Role(std::string& out, int choice) const;
  void Token(std::string& out, int choice, SimCursor& cursor) const;
  void Finish(std::string& out, int choice, const SimCursor& cursor) const;
  void FinalUsage(std::string& out, int64_t completion_tokens, int64_t reasoning_tokens) const;
  void ErrorEvent(std::string& out) const;

  // The body of an unstreamed answer.
  std::string Whole(int64_t completion_tokens, int64_t reasoning_tokens) const;

 private:
  // Like vLLM: usage of this choice and its prompt only.
  void UsageMember(std::string& out, int choice, int64_t completion_tokens) const;
  std::string Usage(int64_t completion_tokens, int64_t reasoning_tokens) const;

  const SimPlan* plan_;
  bool usage_details_;
  std::string head_;  // {"id":…,"object":…,"created":…,"model":…,
  std::string whole_head_;
};

std::string RenderError(const SimError& error, bool flat);

}  // namespace tollgate::test
