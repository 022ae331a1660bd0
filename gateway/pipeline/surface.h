// The interface of a surface: a public wire API, as pure translation. It reads a body into the
// canonical request, and canonical events into the bytes that the caller gets; it knows no clients
// and no sockets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

// What an answer is stamped with.
struct AnswerStamp {
  // 24 random base62 characters, the tail of public ids.
  std::string id;
  // Unix time in seconds.
  int64_t created_s = 0;
  // For answers that say when they ended; none: the moment that they were created.
  const Clock* clock = nullptr;

  int64_t NowS() const { return clock != nullptr ? clock->WallUs() / 1'000'000 : created_s; }
};

// One answer as an event stream. Calls come in the order of the events; everything that one call of
// Generation::Next brought is appended to one buffer and leaves in one write, each event whole.
class StreamEncoder {
 public:
  virtual ~StreamEncoder() = default;
  virtual void OnStarted(const inference::v1::Started& started, std::string& out) = 0;
  virtual void OnDelta(const inference::v1::Delta& delta, std::string& out) = 0;
  // The end of an answer that went well, terminal marker included. Nothing follows.
  virtual void OnEnd(const inference::v1::End& end, std::string& out) = 0;
  // The end of an answer that broke after its stream had begun (decisions.md 23). Nothing follows.
  virtual void OnError(const Error& error, std::string& out) = 0;
  // Says that the stream is alive; may stand between any two events, also before the first.
  virtual void KeepAlive(std::string& out) { out += ": keep-alive\n\n"; }
};

// One answer as a single JSON body.
class FoldedAnswer {
 public:
  virtual ~FoldedAnswer() = default;
  virtual void OnDelta(const inference::v1::Delta& delta) = 0;
  // The whole body. Called once, after an end without an error.
  virtual std::string Finish(const inference::v1::End& end) = 0;
};

// Three functions without a state of their own.
struct Surface {
  // Checks the shape of the body and translates it. The document lives no longer than the call.
  Result<CanonicalRequest> (*ParseRequest)(const json::Document& body);
  // Null where no request streams.
  std::unique_ptr<StreamEncoder> (*MakeStreamEncoder)(const CanonicalRequest& request,
                                                      const AnswerStamp& stamp);
  // Null where no request is answered.
  std::unique_ptr<FoldedAnswer> (*MakeFoldedAnswer)(const CanonicalRequest& request,
                                                    const AnswerStamp& stamp);
};

}  // namespace tollgate::gateway
