// Engine output: each line of the input is the data of one event; then the whole input as a
// response that is not streamed. All text that comes out is valid as the inside of a JSON string.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "services/inference_router/engine/chunk_reader.h"
#include "tests/fuzz/fuzz.h"

namespace tollgate::inference_router {
namespace {

using inference::v1::Event;

bool IsJson(const std::string& text) {
  return json::Document::ParseView(text, {.allow_lone_surrogates = true, .allow_nul = true}).ok();
}

bool IsInside(const std::string& escaped) { return IsJson("\"" + escaped + "\""); }

void Check(const std::vector<Event>& events, int choices) {
  std::set<int> finished;
  std::set<std::pair<int, int>> named;
  for (const Event& event : events) {
    FUZZ_CHECK(event.has_delta());
    const inference::v1::Delta& delta = event.delta();
    FUZZ_CHECK(delta.choice() >= 0 && delta.choice() < choices);
    FUZZ_CHECK(!finished.contains(delta.choice()));
    if (delta.finish_reason() != inference::v1::FINISH_REASON_UNSPECIFIED)
      finished.insert(delta.choice());
    FUZZ_CHECK(IsInside(delta.content_json()));
    FUZZ_CHECK(IsInside(delta.reasoning_json()));
    FUZZ_CHECK(IsInside(delta.refusal_json()));
    FUZZ_CHECK(IsInside(delta.stop_sequence_json()));
    if (!delta.logprobs_json().empty()) FUZZ_CHECK(IsJson(delta.logprobs_json()));
    for (const inference::v1::ToolCallDelta& call : delta.tool_calls()) {
      FUZZ_CHECK(IsInside(call.id_json()));
      FUZZ_CHECK(IsInside(call.name_json()));
      FUZZ_CHECK(IsInside(call.arguments_json()));
      // The first delta of a call, and only that one, has id and name.
      const bool first = named.emplace(delta.choice(), call.index()).second;
      FUZZ_CHECK(first == !call.name_json().empty());
      FUZZ_CHECK(first == !call.id_json().empty());
    }
  }
}

// Ids of calls are random where the engine gives none.
std::string WithoutIds(Event event) {
  for (auto& call : *event.mutable_delta()->mutable_tool_calls()) call.clear_id_json();
  return event.SerializeAsString();
}

void Read(std::string_view input, inference::v1::RequestKind kind) {
  const ChunkReader::Options options{.kind = kind, .choices = 2, .window = 4096};
  ChunkReader reader(options);
  ChunkReader::Options parse_all = options;
  parse_all.templates = false;
  ChunkReader parser(parse_all);
  std::vector<Event> events, parsed;
  ChunkReader::Status status = ChunkReader::Status::kMore;
  for (size_t begin = 0; begin <= input.size() && status == ChunkReader::Status::kMore;) {
    const size_t end = std::min(input.find('\n', begin), input.size());
    const std::string line(input.substr(begin, end - begin));
    status = reader.Read(line, events);
    FUZZ_CHECK(parser.Read(line, parsed) == status);
    begin = end + 1;
  }
  FUZZ_CHECK(parser.finished() == reader.finished());
  FUZZ_CHECK(events.size() == parsed.size());
  for (size_t i = 0; i < events.size(); ++i) {
    FUZZ_CHECK(WithoutIds(events[i]) == WithoutIds(parsed[i]));
  }
  Check(events, options.choices);
  ChunkReader whole(options);
  events.clear();
  FUZZ_CHECK(whole.ReadWhole(input, events) != ChunkReader::Status::kMore);
  Check(events, options.choices);
}

// The output never exceeds the budget of the answer, whatever the engine sends (H75).
void ReadBounded(std::string_view input) {
  constexpr int64_t kBudget = 600;
  ChunkReader reader({.choices = 2, .window = 4096, .max_answer_bytes = kBudget});
  std::vector<Event> events;
  ChunkReader::Status status = ChunkReader::Status::kMore;
  for (int round = 0; round < 4; ++round) {
    for (size_t begin = 0; begin <= input.size() && status == ChunkReader::Status::kMore;) {
      const size_t end = std::min(input.find('\n', begin), input.size());
      status = reader.Read(input.substr(begin, end - begin), events);
      begin = end + 1;
    }
  }
  size_t bytes = 0;
  for (const Event& event : events) {
    const inference::v1::Delta& delta = event.delta();
    bytes += delta.content_json().size() + delta.reasoning_json().size() +
             delta.refusal_json().size() + delta.logprobs_json().size();
    for (const inference::v1::ToolCallDelta& call : delta.tool_calls()) {
      bytes += call.name_json().size() + call.arguments_json().size();
    }
  }
  // Half a character that the engine did not complete is replaced after the count.
  constexpr size_t kReplacements = 2 * 3 * 6;
  FUZZ_CHECK(bytes <= static_cast<size_t>(kBudget) + kReplacements);
}

}  // namespace
}  // namespace tollgate::inference_router

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = tollgate::fuzz::Text(data, size);
  using namespace tollgate;
  inference_router::Read(input, inference::v1::REQUEST_KIND_CHAT);
  inference_router::Read(input, inference::v1::REQUEST_KIND_COMPLETION);
  inference_router::ReadBounded(input);
  return 0;
}
