#include "tests/support/sim_faults.h"

#include <fcntl.h>
#include <unistd.h>

namespace tollgate::test {

void SimFaults::Set(const Json& faults) {
  percent_ = faults["percent"].integer();
  scripts_ = faults["scripts"].elements();
  random_.seed(static_cast<uint32_t>(faults["seed"].integer()));
}

const Json& SimFaults::Next() {
  static const Json kNone;
  if (scripts_.empty() || static_cast<int64_t>(random_() % 100) >= percent_) return kNone;
  return scripts_[random_() % scripts_.size()];
}

void WriteToJournal(const std::string& file, const std::string& engine, const SimRequest& request,
                    const SimPlan& plan) {
  int64_t tokens = plan.unseen_tokens;
  for (const SimChoice& choice : plan.choices) {
    for (const SimSegment& segment : choice.segments) tokens += segment.count;
  }
  Json line = Json::Object();
  line.Set("engine", engine)
      .Set("number", request.number)
      .Set("tag", request.tag)
      .Set("stream", request.stream)
      .Set("prompt_tokens", request.prompt_tokens)
      .Set("tokens", tokens)
      .Set("fault", plan.script.fault);
  const int out = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (out < 0) return;
  const std::string text = line.Dump() + "\n";
  [[maybe_unused]] const ssize_t written = write(out, text.data(), text.size());
  close(out);
}

}  // namespace tollgate::test
