#include "gateway/surfaces/embeddings/request.h"

#include "gateway/surfaces/shared/body.h"
#include "gateway/surfaces/shared/text_inputs.h"

namespace tollgate::gateway {

namespace {

using enum FieldKind;
using enum FieldFate;

// The published limit, and the most that a router takes (inference.proto).
constexpr int64_t kMaxInputs = 2048;

// Absent from this table and from that of all endpoints (engine_fields.h): forwarded as it came
// (decisions.md 17).
constexpr FieldRule kRules[] = {
    {"model", kString, kOwn},
    {"input", kAny, kOwn},
    {"encoding_format", kString, kOwn},
    {"dimensions", kInteger, kForward, 1},
    // An embedding is one body.
    {"stream", kAny, kDrop},
    {"stream_options", kAny, kDrop},
    {"max_tokens", kAny, kDrop},
    {"max_completion_tokens", kAny, kDrop},
    // An engine that knows them would take them instead of the input, or send vectors in another
    // form than the one that the router reads.
    {"messages", kAny, kDrop},
    {"embed_dtype", kAny, kDrop},
    {"embedding_format", kAny, kDrop},
    {"endianness", kAny, kDrop},
};

}  // namespace

Result<CanonicalRequest> ParseEmbeddingRequest(const json::Document& body) {
  const json::Value root = body.root();
  CanonicalRequest request;
  request.kind = inference::v1::REQUEST_KIND_EMBEDDING;
  request.prompt_field = "input";
  auto model = ReadModel(root);
  if (!model) return Fail{model.error()};
  request.model = std::move(*model);
  const json::Value input = root.Find("input");
  const auto inputs =
      ReadTextInputs(input, {.name = "input", .most = kMaxInputs, .empty_text = false});
  if (!inputs) return Fail{inputs.error()};
  request.prompt = inputs->size;
  request.choices = static_cast<int32_t>(inputs->size.prompts);
  MemberWriter writer(body.text());
  writer.Add("input", input.raw());
  if (auto read = ReadMembers(root, kRules, writer, request.prompt); !read) {
    return Fail{read.error()};
  }
  request.members_json = writer.Take();
  auto state = std::make_shared<EmbeddingState>();
  const json::Value format = root.Find("encoding_format");
  if (format.StringEquals("base64")) {
    state->form = VectorForm::kBase64;
  } else if (!format.is_null() && !format.StringEquals("float")) {
    return BadRequest("'encoding_format' must be 'float' or 'base64'.", "encoding_format");
  }
  request.state = std::move(state);
  return request;
}

}  // namespace tollgate::gateway
