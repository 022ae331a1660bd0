// Random requests through a surface and the router's engine request: the caller's request reaches
// the engine unchanged in meaning, numbers digit by digit, keys in their order, except for the
// documented rewrites.
//
//   forwarding_fuzz_tests [--runs=N] [--only=chat] [--seed=FIRST]
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "common/engines/kinds.h"
#include "gateway/surfaces/chat_completions/chat_surface.h"
#include "gateway/surfaces/completions/completions_surface.h"
#include "gateway/surfaces/messages/messages_surface.h"
#include "gateway/surfaces/responses/responses_surface.h"
#include "services/inference_router/engine/engine_request.h"
#include "services/inference_router/engine/engine_text.h"
#include "tests/fuzz/forwarding/conversations.h"
#include "tests/fuzz/seeded.h"

namespace tollgate::fuzz {
namespace {

using test::Json;

struct Row {
  const char* name;
  const gateway::Surface& (*surface)();
  ForwardCase (*make)(Random& random);
  // Applied before the comparison with the expected body; null: none.
  Json (*plain)(const Json& body) = nullptr;
};

// Members that only the router may add.
void AddRoutersOwn(const ForwardCase& made, catalog::v1::EngineKind kind, const std::string& model,
                   Json& expected) {
  expected.Set("model", Json(model)).Set("stream", true);
  Json options = Json::Object();
  options.Set("include_usage", true);
  if (engines::Of(kind).usage_on_chunks) options.Set("continuous_usage_stats", true);
  expected.Set("stream_options", std::move(options));
  if (made.max_tokens) expected.Set("max_tokens", Json(*made.max_tokens));
}

constexpr char kReplacement[] = "\xef\xbf\xbd";  // U+FFFD

std::string Replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// The expected value for engines that cannot take a NUL (decision 38). The arguments of calls are
// JSON in a string.
Json WithoutNul(const Json& value) {
  if (value.is_string()) {
    const std::string_view nul("\0", 1);
    return Json(Replaced(Replaced(value.str(), nul, kReplacement), "\\u0000", "\\ufffd"));
  }
  if (value.is_array()) {
    Json out = Json::Array();
    for (const Json& element : value.elements()) out.Add(WithoutNul(element));
    return out;
  }
  if (!value.is_object()) return value;
  Json out = Json::Object();
  for (const Json::Member& member : value.members()) {
    out.Set(WithoutNul(Json(member.first)).str(), WithoutNul(member.second));
  }
  return out;
}

std::vector<std::string> Differences(const Json& got, const Json& expected) {
  std::vector<std::string> wrong;
  std::set<std::string> seen;
  for (const Json::Member& member : got.members()) {
    if (!seen.insert(member.first).second) wrong.push_back("twice: " + member.first);
    if (!expected.has(member.first)) {
      wrong.push_back("unexpected: " + member.first);
    } else if (expected[member.first] != member.second) {
      wrong.push_back(member.first + " is\n    " + member.second.Dump() + "\n  but expected\n    " +
                      expected[member.first].Dump());
    }
  }
  for (const Json::Member& member : expected.members()) {
    if (!seen.contains(member.first)) wrong.push_back("missing: " + member.first);
  }
  return wrong;
}

bool RunOne(const Row& row, uint64_t seed) {
  Random random(seed);
  ForwardCase made = row.make(random);
  const std::string text = Write(random, made.request);
  std::string body;
  std::vector<std::string> wrong;
  const auto document = json::Document::ParseView(text, {.allow_nul = true});
  if (!document.ok()) {
    wrong.push_back("not accepted as JSON: " + document.error().message);
  } else if (auto canonical = row.surface().ParseRequest(*document); !canonical.ok()) {
    wrong.push_back("refused: " + canonical.error().ToString());
  } else {
    if (canonical->model != made.request["model"].str()) wrong.emplace_back("the model");
    if (canonical->choices != made.choices) wrong.emplace_back("the number of choices");
    if (canonical->max_tokens != made.max_tokens) wrong.emplace_back("max_tokens");
    inference::v1::GenerateRequest request;
    request.set_kind(canonical->kind);
    request.set_members_json(canonical->members_json);
    *request.mutable_reasoning() = canonical->reasoning;
    request.set_max_tokens(canonical->max_tokens.value_or(0));
    const auto kind = random.Pick({catalog::v1::ENGINE_KIND_VLLM, catalog::v1::ENGINE_KIND_SGLANG,
                                   catalog::v1::ENGINE_KIND_LLAMACPP});
    const std::string model = RandomString(random).str();
    body = inference_router::BuildEngineBody(request, kind, model,
                                             inference_router::EngineAnswer::kStreamed);
    const std::optional<Json> got = Json::Parse(body);
    if (!engines::Of(kind).takes_nul) made.expected = WithoutNul(made.expected);
    AddRoutersOwn(made, kind, model, made.expected);
    if (!got) {
      wrong.emplace_back("the engine's body is not JSON");
    } else {
      wrong = Differences(row.plain ? row.plain(*got) : *got, made.expected);
    }
  }
  if (wrong.empty()) return true;
  PrintCurrent();
  for (const std::string& line : wrong) std::fprintf(stderr, "  %s\n", line.c_str());
  std::fprintf(stderr, "request:\n%s\nengine body:\n%s\n", text.c_str(), body.c_str());
  return false;
}

}  // namespace

int Main(int argc, char** argv) {
  Seeded asked;
  if (!ReadArguments(argc, argv, asked)) return 2;
  const Row rows[] = {{"chat", gateway::ChatSurface, RandomChatRequest},
                      {"completions", gateway::CompletionsSurface, RandomCompletionsRequest},
                      {"messages", gateway::MessagesSurface, RandomMessagesRequest, Plain},
                      {"responses", gateway::ResponsesSurface, RandomResponsesRequest, Plain}};
  bool good = true;
  for (const Row& row : rows) {
    good = RunSeeds(row.name, asked, [&](uint64_t seed) { return RunOne(row, seed); }) && good;
  }
  return good ? 0 : 1;
}

}  // namespace tollgate::fuzz

int main(int argc, char** argv) { return tollgate::fuzz::Main(argc, argv); }
