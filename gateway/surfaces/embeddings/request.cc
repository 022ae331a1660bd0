#include "gateway/surfaces/embeddings/request.h"

#include "common/base/try.h"
#include "gateway/surfaces/shared/request_members.h"
#include "gateway/surfaces/shared/text_inputs.h"

namespace tollgate::gateway {

namespace {

using enum FieldKind;
using enum FieldAction;

// Limit of the public API and of the routers (inference.proto).
constexpr int64_t kMaxInputs = 2048;

// Members that are neither in this table nor in the shared one (engine_fields.h) are forwarded
// unchanged (decision 17).
constexpr FieldRule kEmbeddingsRules[] = {
    {"model", kString, kConsume},
    {"input", kAny, kConsume},
    {"encoding_format", kString, kConsume},
    {"dimensions", kInteger, kForward, 1},
    // These have no meaning for embeddings.
    {"stream", kAny, kDrop},
    {"stream_options", kAny, kDrop},
    {"max_tokens", kAny, kDrop},
    {"max_completion_tokens", kAny, kDrop},
    // Engines may use them in place of the input, or return vectors in a form that the router
    // cannot read.
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
  TRY(auto model, ReadModel(root));
  request.model = std::move(model);
  const json::Value input = root.Find("input");
  TRY(const auto inputs,
      ReadTextInputs(input,
                     {.name = "input", .max_inputs = kMaxInputs, .allow_empty_text = false}));
  request.prompt = inputs.size;
  request.choices = static_cast<int32_t>(inputs.size.prompts);
  MemberWriter writer(body.text());
  writer.Add("input", input.raw());
  TRY(ReadMembers(root, kEmbeddingsRules, writer, request));
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
