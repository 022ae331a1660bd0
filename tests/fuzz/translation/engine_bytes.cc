#include "tests/fuzz/translation/engine_bytes.h"

#include "tests/fuzz/translation/chunk_writer.h"

namespace tollgate::fuzz {
namespace {

int Rank(Kind kind) {
  switch (kind) {
    case Kind::kReasoning:
      return 0;
    case Kind::kText:
      return 1;
    case Kind::kRefusal:
      return 2;
    case Kind::kCall:
      return 3;
    case Kind::kFinish:
      return 4;
  }
  return 4;
}

// Whether a step may join the chunk that holds the steps before it.
bool Fits(const Chunk& chunk, const Step& step, bool one_choice) {
  for (const Part& part : chunk) {
    if (part.choice != step.choice) {
      if (one_choice) return false;
      continue;
    }
    if (&part != &chunk.back()) return false;
    const Step& last = *part.steps.back();
    if (last.kind == Kind::kCall && step.kind == Kind::kCall) {
      for (const Step* other : part.steps) {
        if (other->kind == Kind::kCall && other->call == step.call) return false;
      }
      return true;
    }
    return Rank(last.kind) < Rank(step.kind);
  }
  return !one_choice || chunk.empty();
}

std::vector<Chunk> Group(Random& random, const Answer& answer, bool one_choice) {
  std::vector<Chunk> chunks;
  const size_t together = random.Pick<size_t>({0, 10, 60});
  for (const Step& step : answer.steps) {
    const bool join =
        !chunks.empty() && random.Percent(together) && Fits(chunks.back(), step, one_choice);
    if (!join) chunks.emplace_back();
    Chunk& chunk = chunks.back();
    if (chunk.empty() || chunk.back().choice != step.choice) chunk.push_back({step.choice, {}});
    chunk.back().steps.push_back(&step);
  }
  return chunks;
}

// The framing of one event, in any form that the standard allows.
class Framer {
 public:
  explicit Framer(Random& random) : random_(random) {
    end_ = random.Pick<const char*>({"\n", "\n", "\r\n", "\r"});
    colon_ = random.Percent(80) ? "data: " : "data:";
    odd_ = random.Percent(20) ? 20 : 0;
    if (random.Percent(5)) out_ += "\xef\xbb\xbf";
  }

  void Event(const std::string& data, size_t steps, bool marker) {
    if (random_.Percent(odd_)) Line(": a comment");
    if (random_.Percent(odd_)) Line("");
    if (random_.Percent(odd_)) Line("event: message");
    if (random_.Percent(odd_)) Line("id: 7");
    if (random_.Percent(odd_)) Line("retry: 100");
    if (random_.Percent(odd_)) Line("unknown: field");
    size_t at = 0;
    for (size_t next; (next = data.find('\n', at)) != std::string::npos; at = next + 1) {
      Line(colon_ + data.substr(at, next - at));
    }
    Line(colon_ + data.substr(at));
    Line("");
    // The last byte of a CRLF adds nothing.
    events_.push_back({out_.size() - (end_.size() - 1), steps, marker});
  }
  void Line(const std::string& text) { out_ += text + end_; }

  std::string& out() { return out_; }
  std::vector<EngineBytes::Event>& events() { return events_; }

 private:
  Random& random_;
  std::string out_, end_, colon_;
  size_t odd_ = 0;
  std::vector<EngineBytes::Event> events_;
};

std::string ErrorObject(Random& random) {
  const std::string secret = "\"" + std::string(kSecret) + "\"";
  switch (random.Below(4)) {
    case 0:
      return R"({"error":{"message":)" + secret + R"(,"type":"InternalServerError","code":500}})";
    case 1:
      return R"({"object":"error","message":)" + secret + R"(,"type":)" + secret +
             R"(,"code":400})";
    case 2:
      return R"({"error":)" + secret + R"(,"error_type":"generation"})";
    default:
      return R"({"error":{"object":"error","message":)" + secret + "}}";
  }
}

class Renderer {
 public:
  Renderer(Random& random, const Answer& answer, const Abilities& abilities, EngineBytes& out)
      : random_(random),
        answer_(answer),
        out_(out),
        writer_(random, answer, abilities.chat),
        framer_(random) {}

  void Stream();
  void Whole();

 private:
  bool Broken(size_t chunk);
  std::optional<int> OpenChoice() const;
  void Chunks(const std::vector<Chunk>& chunks);
  std::string UsageFor(const Chunk& chunk, bool last);
  std::string Usage(int choice);
  void Note(const Chunk& chunk);
  void End();

  Random& random_;
  const Answer& answer_;
  EngineBytes& out_;
  ChunkWriter writer_;
  Framer framer_;
  size_t steps_ = 0;
  std::vector<int64_t> tokens_;  // sent so far, by choice
  int64_t reasoning_ = 0;
  size_t break_at_ = 0;
};

void Renderer::Note(const Chunk& chunk) {
  tokens_.resize(answer_.choices.size());
  for (const Part& part : chunk) {
    for (const Step* step : part.steps) {
      ++steps_;
      if (!IsToken(*step)) continue;
      ++tokens_[static_cast<size_t>(part.choice)];
      if (step->kind == Kind::kReasoning) ++reasoning_;
    }
  }
}

// Usage of one choice, or of all together (-1).
std::string Renderer::Usage(int choice) {
  tokens_.resize(answer_.choices.size());
  int64_t sum = 0;
  for (const int64_t tokens : tokens_) sum += tokens;
  if (choice >= 0) {
    sum = tokens_[static_cast<size_t>(choice)];
  } else {
    out_.completion_tokens = sum;
    out_.reasoning_tokens = reasoning_;
  }
  return writer_.Usage(sum, choice >= 0 ? 0 : reasoning_);
}

std::string Renderer::UsageFor(const Chunk& chunk, bool last) {
  if (out_.usage == UsageHabit::kEveryChunk) return Usage(chunk.front().choice);
  if (out_.usage == UsageHabit::kWithFinish && last) return Usage(-1);
  return "";
}

// A choice that has not finished yet.
std::optional<int> Renderer::OpenChoice() const {
  for (size_t i = steps_; i < answer_.steps.size(); ++i) {
    if (answer_.steps[i].kind == Kind::kFinish) return answer_.steps[i].choice;
  }
  return std::nullopt;
}

// Replaces this chunk by something that ends the stream.
bool Renderer::Broken(size_t chunk) {
  if (chunk != break_at_) return false;
  if (out_.breakage == Breakage::kErrorEvent) {
    framer_.Event(ErrorObject(random_), 0, false);
  } else if (out_.breakage == Breakage::kGarbage) {
    framer_.Event(R"({"choices":[{"index":0,"delta":{"content":")" + std::string(kSecret), 0,
                  false);
  } else if (out_.breakage == Breakage::kAbort) {
    const std::optional<int> open = OpenChoice();
    if (!open) {
      out_.breakage = Breakage::kNone;
      return false;
    }
    framer_.Event(writer_.Abort(*open), 0, false);
  } else {
    return false;
  }
  framer_.events().pop_back();
  if (random_.Percent(50)) framer_.Line("data: [DONE]"), framer_.Line("");
  return true;
}

void Renderer::Chunks(const std::vector<Chunk>& chunks) {
  if (writer_.roles_first()) framer_.Event(writer_.Roles(), 0, false);
  if (out_.usage == UsageHabit::kFirst) framer_.Event(writer_.Empty(Usage(-1)), 0, false);
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (Broken(i)) return;
    if (random_.Percent(writer_.empty_percent()))
      framer_.Event(writer_.Nothing(steps_), steps_, false);
    Note(chunks[i]);
    const std::string usage = UsageFor(chunks[i], i + 1 == chunks.size());
    framer_.Event(writer_.Write(chunks[i], usage), steps_, false);
  }
  if (Broken(chunks.size())) return;
  End();
}

void Renderer::End() {
  if (out_.usage == UsageHabit::kTwice) framer_.Event(writer_.Empty(Usage(-1)), steps_, false);
  if (out_.usage == UsageHabit::kTwice || out_.usage == UsageHabit::kLast ||
      out_.usage == UsageHabit::kEveryChunk) {
    framer_.Event(writer_.Empty(Usage(-1)), steps_, false);
  }
  if (random_.Percent(10)) framer_.Event(writer_.Nothing(steps_), steps_, false);
  if (random_.Percent(85)) {
    framer_.Event(random_.Percent(5) ? " [DONE]" : "[DONE]", steps_, true);
    if (random_.Percent(10)) framer_.out() += kSecret;
  }
}

void Renderer::Stream() {
  const std::vector<Chunk> chunks = Group(random_, answer_, out_.usage_per_choice);
  break_at_ = random_.Below(chunks.size() + 1);
  Chunks(chunks);
  out_.bytes = std::move(framer_.out());
  out_.events = std::move(framer_.events());
  if (out_.breakage == Breakage::kCut) out_.bytes.resize(random_.Below(out_.bytes.size()));
  out_.ids_are_made_up = writer_.ids_are_made_up();
}

void Renderer::Whole() {
  out_.whole = true;
  out_.breakage = Breakage::kNone;
  if (out_.usage != UsageHabit::kNever) out_.usage = UsageHabit::kLast;
  out_.usage_per_choice = false;
  tokens_.resize(answer_.choices.size());
  for (const Step& step : answer_.steps) Note({{step.choice, {&step}}});
  out_.bytes = writer_.Whole(out_.usage == UsageHabit::kNever ? "" : Usage(-1));
  out_.events = {{out_.bytes.size(), steps_, true}};
  out_.ids_are_made_up = writer_.ids_are_made_up();
}

}  // namespace

EngineBytes RandomEngineBytes(Random& random, const Answer& answer, const Abilities& abilities) {
  EngineBytes out;
  out.usage =
      random.Pick({UsageHabit::kNever, UsageHabit::kLast, UsageHabit::kLast, UsageHabit::kTwice,
                   UsageHabit::kWithFinish, UsageHabit::kEveryChunk, UsageHabit::kFirst});
  out.usage_per_choice = out.usage == UsageHabit::kEveryChunk;
  if (!random.Percent(70)) {
    out.breakage = random.Pick({Breakage::kErrorEvent, Breakage::kAbort, Breakage::kGarbage,
                                Breakage::kCut, Breakage::kCut, Breakage::kCut});
  }
  Renderer renderer(random, answer, abilities, out);
  random.Percent(6) ? renderer.Whole() : renderer.Stream();
  return out;
}

}  // namespace tollgate::fuzz
