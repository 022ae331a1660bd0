// The JSON that an engine of a dialect sends.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/translation/answer.h"

namespace tollgate::fuzz {

// One chunk's content for one choice.
struct Part {
  int choice = 0;
  std::vector<const Step*> steps;
};
using Chunk = std::vector<Part>;

// Forms of tool calls; services/inference_router/engine/tool_calls.h describes what engines do.
enum class ToolStyle {
  kPlain,     // index; id and name first
  kSparse,    // indexes with gaps
  kRepeat,    // id and name in every delta
  kLateName,  // the name comes with the second delta
  kNoIds,     // no id at all
  kNoIndex,   // no index
  kBare,      // neither index nor id
  kSingle,    // one call without a list around it
  kAllZero,   // every index is 0
  kFresh,     // a fresh id, and the name, in every delta
  kObject,    // arguments are an object where a call is sent at once
};

class ChunkWriter {
 public:
  // The answer must outlive the writer.
  ChunkWriter(Random& random, const Answer& answer, bool chat);

  bool roles_first() const { return roles_ == Roles_::kFirst; }
  size_t empty_percent() const { return empty_percent_; }
  bool ids_are_made_up() const { return style_ == ToolStyle::kNoIds || style_ == ToolStyle::kBare; }

  // usage: the object's text, or empty.
  std::string Write(const Chunk& chunk, const std::string& usage);
  std::string Roles();
  std::string Empty(const std::string& usage);
  // A chunk without relevant content, after this many steps.
  std::string Nothing(size_t steps);
  std::string Abort(int choice);
  std::string Whole(const std::string& usage);
  std::string Usage(int64_t completion_tokens, int64_t reasoning_tokens);

 private:
  enum class Roles_ { kNever, kFirst, kAlways };
  using Members = std::vector<std::pair<std::string, std::string>>;

  std::string Object(Members members, bool may_break = false);
  std::string Text(std::u16string_view text);
  std::string Envelope(const std::string& choices, const std::string& usage);
  std::string ChoiceObject(const Part& part);
  void AddTexts(const Part& part, Members& delta);
  std::string ToolDelta(const Step& step);
  std::string WholeMessage(int choice);
  void AddFinish(int choice, Members& members);
  std::string Logprobs(const std::vector<const Step*>& steps);
  std::string IndexOf(const Step& step, ToolStyle style);
  ToolStyle StyleOf(const Step& step) const;

  Random& random_;
  const Answer& answer_;
  const bool chat_;
  Roles_ roles_;
  ToolStyle style_;
  int reasoning_names_;  // 1 reasoning_content, 2 reasoning, 3 both
  size_t escaped_percent_;
  size_t empty_percent_;
  bool null_content_, null_usage_, extras_, shuffle_, lines_, matched_stop_;
  int no_finish_;  // finish_reason of all chunks but the last: null, absent, ""
  std::vector<std::vector<std::string>> ids_, names_;
  size_t fresh_ = 0;
};

}  // namespace tollgate::fuzz
