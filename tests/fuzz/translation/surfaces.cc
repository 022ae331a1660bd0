#include "tests/fuzz/translation/surfaces.h"

#include "gateway/surfaces/chat_completions/chat_surface.h"
#include "tests/support/protocol/chat_checker.h"

namespace tollgate::fuzz {
namespace {

std::string Stream(const Asked& asked) { return asked.stream ? R"(,"stream":true)" : ""; }

std::string StreamWithUsage(const Asked& asked) {
  if (!asked.include_usage) return Stream(asked);
  return Stream(asked) + R"(,"stream_options":{"include_usage":true})";
}

std::string ChatRequest(const Asked& asked) {
  return R"({"model":"sim/model","messages":[{"role":"user","content":"x"}],"logprobs":true,"n":)" +
         std::to_string(asked.choices) + StreamWithUsage(asked) + "}";
}

std::string ChatFinish(const Choice& choice) {
  if (choice.finish == Finish::kLength) return "length";
  if (choice.finish == Finish::kFilter) return "content_filter";
  return choice.calls.empty() ? "stop" : "tool_calls";
}

const SurfaceRow kChat = {
    .name = "chat",
    .surface = gateway::ChatSurface,
    .kind = inference::v1::REQUEST_KIND_CHAT,
    .abilities = {.chat = true, .max_choices = 3},
    .request = ChatRequest,
    .check_stream =
        [](std::string_view bytes, const Asked& asked) {
          return test::CheckChatStream(bytes, {asked.choices, asked.include_usage});
        },
    .check_body =
        [](std::string_view body, const Asked& asked) {
          return test::CheckChatBody(body, {asked.choices, false});
        },
    .finish = ChatFinish,
    .tells_logprobs = true,
};

}  // namespace

const std::vector<SurfaceRow>& SurfaceRows() {
  static const std::vector<SurfaceRow> rows = {kChat};
  return rows;
}

}  // namespace tollgate::fuzz
