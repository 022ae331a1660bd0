#include "tests/contract/endpoint_forms.h"

#include "tests/support/json.h"

namespace tollgate::test {
namespace {

constexpr char kImageUrl[] =
    R"({"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}})";
constexpr char kInputImage[] =
    R"({"type":"input_image","detail":"auto","image_url":"data:image/png;base64,AA=="})";
constexpr char kImageBlock[] =
    R"({"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}})";

std::string User(const std::string& content) {
  return R"([{"role":"user","content":)" + content + "}]";
}

std::string Words(int64_t count) {
  std::string text = "hello";
  for (int64_t i = 1; i < count; ++i) text += " there";
  return text;
}

}  // namespace

std::string EndpointForm::Body(const Ask& ask) const {
  const bool by_text = !ask.script.empty() && !forwards;
  const std::string text = JsonQuoted(by_text ? "x_sim:" + ask.script : Words(ask.words));
  std::string body = R"({"model":)" + JsonQuoted(ask.model.empty() ? model : ask.model) + R"(,")" +
                     input + R"(":)" + (input == "messages" ? User(text) : text);
  if (!limit.empty() && (!ask.limit.empty() || family == Family::kMessages)) {
    body += ",\"" + limit + "\":" + (ask.limit.empty() ? "64" : ask.limit);
  }
  if (!ask.script.empty() && forwards) body += ",\"x_sim\":" + ask.script;
  if (ask.stream) body += R"(,"stream":true)";
  return body + ask.more + "}";
}

const std::vector<EndpointForm>& EndpointForms() {
  static const std::vector<EndpointForm> forms = {
      {.name = "chat",
       .path = "/v1/chat/completions",
       .model = "sim/model",
       .unreachable_model = "sim/empty",
       .limit = "max_tokens",
       .input = "messages",
       .forwards = true,
       .image = User("[" + std::string(kImageUrl) + "]")},
      {.name = "completions",
       .path = "/v1/completions",
       .model = "sim/text",
       .unreachable_model = "sim/unreachable-completion",
       .limit = "max_tokens",
       .input = "prompt",
       .forwards = true},
      {.name = "responses",
       .path = "/v1/responses",
       .model = "sim/model",
       .unreachable_model = "sim/empty",
       .limit = "max_output_tokens",
       .input = "input",
       .image = User("[" + std::string(kInputImage) + "]")},
      {.name = "input_tokens",
       .path = "/v1/responses/input_tokens",
       .model = "sim/model",
       .input = "input",
       .streams = false,
       .generates = false,
       .image = User("[" + std::string(kInputImage) + "]")},
      {.name = "embeddings",
       .path = "/v1/embeddings",
       .model = "sim/embed",
       .unreachable_model = "sim/unreachable-embedding",
       .input = "input",
       .forwards = true,
       .streams = false},
      {.name = "messages",
       .path = "/v1/messages",
       .family = Family::kMessages,
       .model = "sim/model",
       .unreachable_model = "sim/empty",
       .limit = "max_tokens",
       .input = "messages",
       .image = User("[" + std::string(kImageBlock) + "]")},
      {.name = "count_tokens",
       .path = "/v1/messages/count_tokens",
       .family = Family::kMessages,
       .model = "sim/model",
       .input = "messages",
       .streams = false,
       .generates = false,
       .image = User("[" + std::string(kImageBlock) + "]")},
  };
  return forms;
}

}  // namespace tollgate::test
