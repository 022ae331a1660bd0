#include "gateway/pipeline/checks/decode_body.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/try.h"
#include "common/coding/body_decoder.h"
#include "common/http/head_guard.h"

namespace tollgate::gateway {
namespace {

using coding::BodyDecoder;
using coding::Coding;
using Status = coding::BodyDecoder::Status;

constexpr char kHeader[] = "content-encoding";
// Decoding this many coded bytes takes less than a millisecond, whatever they expand to within the
// loop's limit.
constexpr size_t kMaxCodedBytesOnLoop = size_t{64} * 1024;
// A body is copied when it is parsed, and again when it is written for the engine.
constexpr int64_t kCopies = 3;
constexpr int64_t kRetryAfterMs = 2'000;

// State that the loop and a pool thread use in turns. It owns the bytes because the client may
// disconnect meanwhile.
struct Decoding {
  Decoding(Coding coding, std::string bytes, const coding::DecodeLimits& limits)
      : memory(bytes.size() + coding::DecoderBytes(coding)),
        coded(std::move(bytes)),
        decoder(coding, coded, limits) {}
  const size_t memory;  // in addition to the body
  const std::string coded;
  BodyDecoder decoder;
  std::string body;
};

Error ErrorOf(Status status, Coding coding) {
  const std::string name(coding::CodingName(coding));
  switch (status) {
    case Status::kTooLarge:
      return {.id = ErrorId::kRequestTooLarge,
              .message = "The decoded request body is too large.",
              .reason = Reason::kBodyTooLarge};
    case Status::kBomb:
      return {ErrorId::kBadRequest,
              "Content-Encoding: the request body becomes more than 100 times as large when it is "
              "decoded as " +
                  name + "."};
    case Status::kNoMemory:
      return {.id = ErrorId::kServiceUnavailable,
              .retry_after_ms = kRetryAfterMs,
              .internal = "no memory for a decoder",
              .reason = Reason::kMemory};
    default:
      return {ErrorId::kBadRequest,
              "Content-Encoding: the request body is not complete and valid " + name + "."};
  }
}

// Empty for identity.
Result<std::optional<Coding>> FindCoding(const HttpRequest& request) {
  std::optional<Coding> found;
  int fields = 0;
  for (const auto& [name, value] : request.headers) {
    if (name != kHeader) continue;
    const std::string_view text = http::TrimSpace(value);
    if (text.empty() || http::EqualsIgnoreCase(text, "identity")) continue;
    found = coding::ParseCoding(text);
    if (!found || ++fields > 1) {
      return BadRequest(
          "Content-Encoding must be gzip, zstd, br or identity, and only one of them.");
    }
  }
  return found;
}

// Reserves memory for the decoder and a body of this many bytes.
bool Reserve(RequestContext& context, const Decoding& decoding, size_t most) {
  const MemoryBudget* memory = context.exchange.memory();
  if (memory == nullptr) return true;
  if (memory->level() >= MemoryBudget::Level::kNoLargeBodies) return false;
  return context.body_memory.TryGrow(static_cast<int64_t>(decoding.memory) +
                                     static_cast<int64_t>(most) * kCopies);
}

Fail<Error> ShortOfMemory() {
  return Fail{Error{.id = ErrorId::kServiceUnavailable,
                    .message = "The gateway is short of memory: try again soon.",
                    .retry_after_ms = kRetryAfterMs,
                    .internal = "memory budget",
                    .reason = Reason::kMemory}};
}

// Decodes in pieces of doubling size, so that memory is reserved before it is used.
Task<Result<Status>> Run(RequestContext& context, std::shared_ptr<Decoding> decoding) {
  const size_t limit = context.worker.options.max_body_bytes;
  size_t most = std::min(kMaxBytesDecodedOnLoop, limit + 1);
  if (!Reserve(context, *decoding, most)) co_return ShortOfMemory();
  Status status = Status::kMore;
  if (decoding->coded.size() <= kMaxCodedBytesOnLoop) {
    status = decoding->decoder.Decode(decoding->body, most);
    most *= 2;
  }
  while (status == Status::kMore) {
    if (!Reserve(context, *decoding, std::min(most, limit))) co_return ShortOfMemory();
    auto piece = [decoding, most] { return decoding->decoder.Decode(decoding->body, most); };
    const auto done =
        co_await RunOnPool(*context.worker.decoders, context.worker.loop, std::move(piece));
    if (!done) {
      co_return Unavailable(Reason::kDecoders, "too many large bodies wait to be decoded");
    }
    if (context.exchange.disconnected()) co_return Unavailable("the client disconnected");
    status = *done;
    most *= 2;
  }
  co_return status;
}

}  // namespace

bool IsCoded(const HttpRequest& request) {
  return std::any_of(request.headers.begin(), request.headers.end(),
                     [](const auto& header) { return header.first == kHeader; });
}

Task<Result<void>> DecodeBody(RequestContext& context) {
  HttpRequest& request = context.exchange.mutable_request();
  CO_TRY(const auto coding, FindCoding(request));
  if (!coding) co_return Result<void>();
  const coding::DecodeLimits limits{.max_bytes = context.worker.options.max_body_bytes};
  const auto decoding =
      std::make_shared<Decoding>(*coding, std::exchange(request.body, std::string()), limits);
  auto status = co_await Run(context, decoding);
  const bool decoded = status && *status == Status::kDone;
  context.worker.metrics.CountCodedBody(static_cast<size_t>(*coding), decoded);
  if (!status) co_return Fail{std::move(status).error()};
  if (!decoded) co_return Fail{ErrorOf(*status, *coding)};
  request.body = std::move(decoding->body);
  context.body_memory.Shrink(static_cast<int64_t>(request.body.size()) * kCopies);
  co_return Result<void>();
}

}  // namespace tollgate::gateway
