#include "tests/fuzz/translation/compare.h"

#include "tests/fuzz/random_text.h"
#include "tests/support/json.h"

namespace tollgate::fuzz {
namespace {

using test::AssembledChoice;
using test::Checked;
using test::Ending;

// How much of the engine's output callers must have received.
enum class Measure {
  kWhole,   // everything, and the end
  kSoFar,   // all text that was sent before the stream broke
  kPrefix,  // a prefix of that text, and nothing else
};

// Half a surrogate pair at the end is held back until its other half arrives.
void DropHalf(std::u16string& text) {
  if (!text.empty() && IsHigh(text.back())) text.pop_back();
}

// The output of the first `steps` steps.
std::vector<AssembledChoice> ExpectedChoices(const SurfaceRow& row, const Run& run, size_t steps,
                                             Measure measure) {
  struct Texts {
    bool finished = false;
    std::u16string text, reasoning, refusal;
    std::vector<std::u16string> arguments;
  };
  std::vector<Texts> texts(run.answer.choices.size());
  std::vector<AssembledChoice> want(run.answer.choices.size());
  for (size_t i = 0; i < steps; ++i) {
    const Step& step = run.answer.steps[i];
    Texts& to = texts[static_cast<size_t>(step.choice)];
    AssembledChoice& choice = want[static_cast<size_t>(step.choice)];
    switch (step.kind) {
      case Kind::kReasoning:
        to.reasoning += step.text;
        break;
      case Kind::kText:
        to.text += step.text;
        break;
      case Kind::kRefusal:
        (row.refusal_is_text ? to.text : to.refusal) += step.text;
        break;
      case Kind::kCall:
        if (step.call >= to.arguments.size()) to.arguments.resize(step.call + 1);
        to.arguments[step.call] += step.text;
        break;
      case Kind::kFinish:
        to.finished = true;
        break;
    }
    if (step.logprob && row.tells_logprobs) choice.logprob_tokens.push_back(ToUtf8(step.text));
  }
  for (size_t i = 0; i < want.size(); ++i) {
    const Choice& choice = run.answer.choices[i];
    const bool broken = measure == Measure::kSoFar && !texts[i].finished;
    for (std::u16string* text : {&texts[i].text, &texts[i].reasoning, &texts[i].refusal}) {
      if (broken) DropHalf(*text);
    }
    want[i].text = ToUtf8(texts[i].text);
    want[i].reasoning = ToUtf8(texts[i].reasoning);
    want[i].refusal = ToUtf8(texts[i].refusal);
    for (size_t k = 0; k < texts[i].arguments.size(); ++k) {
      if (broken) DropHalf(texts[i].arguments[k]);
      const std::string id = run.engine.ids_are_made_up ? "" : ToUtf8(choice.calls[k].id);
      want[i].calls.push_back({id, ToUtf8(choice.calls[k].name), ToUtf8(texts[i].arguments[k])});
    }
    if (measure != Measure::kWhole) continue;
    want[i].finish = row.finish(choice);
    if (row.tells_stop_sequence && !choice.refused)
      want[i].stop_sequence = ToUtf8(choice.stop_sequence);
  }
  return want;
}

class Comparison {
 public:
  Comparison(const SurfaceRow& row, const Run& run) : row_(row), run_(run) {}

  std::vector<std::string> Take() { return std::move(wrong_); }
  void Stream();
  void Body();

 private:
  void Check(bool holds, const std::string& what) {
    if (!holds) wrong_.push_back(where_ + ": " + what);
  }
  void Text(const std::string& got, const std::string& want, const std::string& what);
  void Calls(const AssembledChoice& got, const AssembledChoice& want, bool truncated);
  void Choices(const Checked& checked);
  void Usage(const Checked& checked);
  void Violations(const Checked& checked);
  size_t StepsThatCame(bool& all) const;

  const SurfaceRow& row_;
  const Run& run_;
  Measure measure_ = Measure::kWhole;
  std::string where_;
  std::vector<std::string> wrong_;
};

size_t Comparison::StepsThatCame(bool& all) const {
  size_t steps = 0;
  for (const EngineBytes::Event& event : run_.engine.events) {
    if (event.end <= run_.engine.bytes.size()) steps = event.steps;
  }
  all = steps == run_.answer.steps.size();
  return steps;
}

void Comparison::Text(const std::string& got, const std::string& want, const std::string& what) {
  const bool exact = measure_ == Measure::kWhole || (measure_ == Measure::kSoFar && !row_.blocks);
  Check(exact ? got == want : want.starts_with(got),
        what + " is " + test::JsonQuoted(got) + ", expected " + test::JsonQuoted(want));
}

void Comparison::Calls(const AssembledChoice& got, const AssembledChoice& want, bool truncated) {
  if (measure_ == Measure::kWhole) {
    Check(got.calls.size() == want.calls.size(), "the number of calls");
  } else {
    Check(got.calls.size() <= want.calls.size(), "calls that the engine did not send");
  }
  for (size_t i = 0; i < got.calls.size() && i < want.calls.size(); ++i) {
    const test::AssembledCall& call = got.calls[i];
    const test::AssembledCall& expected = want.calls[i];
    Check(expected.id.empty() ? !call.id.empty() : call.id == expected.id, "a call's id");
    Check(call.name == expected.name, "a call's name");
    if (row_.arguments_are_objects && (truncated || where_ == "body")) {
      if (truncated) continue;  // a truncated input is not an object
      const std::string text = expected.arguments.empty() ? "{}" : expected.arguments;
      const std::optional<test::Json> input = test::Json::Parse(text);
      Check(input && input->Dump() == call.arguments,
            "a call's input is " + call.arguments + ", expected " + text);
    } else if (expected.arguments.empty()) {
      Check(call.arguments == "{}" || call.arguments.empty(), "empty arguments");
    } else if (measure_ == Measure::kWhole) {
      Check(call.arguments == expected.arguments,
            "a call's arguments are " + call.arguments + ", expected " + expected.arguments);
    } else {
      Check(
          expected.arguments.starts_with(call.arguments) || (row_.blocks && call.arguments == "{}"),
          "a call's arguments are " + call.arguments + ", expected " + expected.arguments);
    }
  }
}

void Comparison::Choices(const Checked& checked) {
  bool all = false;
  const size_t steps = StepsThatCame(all);
  const std::vector<AssembledChoice> want = ExpectedChoices(row_, run_, steps, measure_);
  if (checked.choices.size() != want.size()) return Check(false, "the number of choices");
  for (size_t i = 0; i < want.size(); ++i) {
    const AssembledChoice& got = checked.choices[i];
    Text(got.text, want[i].text, "the text");
    Text(got.reasoning, want[i].reasoning, "the reasoning");
    Text(got.refusal, want[i].refusal, "the refusal");
    Calls(got, want[i], measure_ != Measure::kWhole);
    if (measure_ != Measure::kWhole) continue;
    Check(got.finish == want[i].finish, "the finish is " + got.finish + ", not " + want[i].finish);
    Check(got.stop_sequence == want[i].stop_sequence, "the stop sequence");
    Check(got.logprob_tokens == want[i].logprob_tokens, "the log probabilities");
  }
}

void Comparison::Usage(const Checked& checked) {
  if (!checked.usage) return Check(false, "usage is missing");
  const auto& usage = run_.generation.end.usage();
  const test::AssembledUsage& got = *checked.usage;
  Check(got.prompt == usage.prompt_tokens(), "the prompt's tokens");
  Check(got.completion == usage.completion_tokens(), "the completion's tokens");
  if (row_.tells_usage_details) {
    Check(got.cached == usage.cached_tokens(), "the cached tokens");
    Check(got.cache_write == usage.cache_write_tokens(), "the tokens written to the cache");
    Check(got.reasoning == usage.reasoning_tokens(), "the reasoning's tokens");
  }
  const UsageHabit habit = run_.engine.usage;
  if (measure_ != Measure::kWhole || habit == UsageHabit::kNever || habit == UsageHabit::kFirst) {
    return;
  }
  if (run_.engine.breakage == Breakage::kCut) return;  // it may or may not have arrived
  Check(got.prompt == run_.answer.prompt_tokens, "prompt tokens differ from the engine's");
  Check(got.completion == run_.engine.completion_tokens,
        "completion tokens differ from the engine's");
  if (!row_.tells_usage_details) return;
  Check(got.cached == run_.answer.cached_tokens, "cached tokens differ from the engine's");
  Check(got.reasoning == run_.engine.reasoning_tokens, "reasoning tokens differ from the engine's");
}

void Comparison::Violations(const Checked& checked) {
  for (const std::string& violation : checked.violations) Check(false, violation);
}

void Comparison::Stream() {
  where_ = "stream";
  bool all = false;
  StepsThatCame(all);
  const Breakage breakage = run_.engine.breakage;
  const bool well = all && (breakage == Breakage::kNone || breakage == Breakage::kCut);
  const Generation& generation = run_.generation;
  if (generation.cut_by_credit) {
    measure_ = Measure::kPrefix;
  } else {
    measure_ = well ? Measure::kWhole : Measure::kSoFar;
    Check(generation.error.has_value() != well, well ? "it must succeed" : "it must fail");
  }
  if (run_.stream.empty()) return;  // refused before the stream started
  Check(run_.stream.find(kSecret) == std::string::npos, "engine-internal text reached the caller");
  const Checked checked = row_.check_stream(run_.stream, run_.asked);
  Violations(checked);
  Check(checked.ending == (generation.error ? Ending::kError : Ending::kWell), "the ending");
  Choices(checked);
  if (generation.error) return;
  if (run_.asked.include_usage || row_.always_usage) {
    Usage(checked);
  } else {
    Check(!checked.usage, "usage that was not requested");
  }
}

void Comparison::Body() {
  where_ = "body";
  if (run_.body.empty()) return;
  Check(run_.body.find(kSecret) == std::string::npos, "engine-internal text reached the caller");
  const Checked checked = row_.check_body(run_.body, run_.asked);
  Violations(checked);
  Choices(checked);
  Usage(checked);
}

}  // namespace

std::vector<std::string> Compare(const SurfaceRow& row, const Run& run) {
  Comparison comparison(row, run);
  comparison.Stream();
  comparison.Body();
  return comparison.Take();
}

}  // namespace tollgate::fuzz
