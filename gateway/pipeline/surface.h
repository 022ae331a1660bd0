// The interface of a surface: one public wire API, as a pure translation. It translates a request
// body to the canonical request, and canonical events to the bytes of the response. It has no
// access to clients or sockets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

// Id and time of a response.
struct ResponseStamp {
  // The request's id in base62. Public ids are this id with a prefix, so that a receipt can be
  // found by them (decision 65).
  std::string id;
  // Unix time in seconds.
  int64_t created_s = 0;
  // Used by responses that state when they ended; null: created_s is used.
  const Clock* clock = nullptr;

  int64_t NowS() const { return clock != nullptr ? clock->WallUs() / 1'000'000 : created_s; }
};

// Encodes one response as server-sent events. Called in the order of the events. The events of one
// Generation::Next are appended to one buffer and sent in one write, each event complete.
class StreamEncoder {
 public:
  virtual ~StreamEncoder() = default;
  virtual void OnStarted(const inference::v1::Started& started, std::string& out) = 0;
  virtual void OnDelta(const inference::v1::Delta& delta, std::string& out) = 0;
  // Encodes a successful end, with the terminal marker. The last call.
  virtual void OnEnd(const inference::v1::End& end, std::string& out) = 0;
  // Encodes a failure after the stream began (decision 23). The last call.
  virtual void OnError(const Error& error, std::string& out) = 0;
  // Encodes a keep-alive, valid between any two events and before the first.
  virtual void KeepAlive(std::string& out) { out += ": keep-alive\n\n"; }
};

// Encodes one response as a single JSON body.
class BodyEncoder {
 public:
  virtual ~BodyEncoder() = default;
  virtual void OnDelta(const inference::v1::Delta& delta) = 0;
  // Returns the body. Called once, after a successful end.
  virtual std::string Finish(const inference::v1::End& end) = 0;
};

// Three stateless functions.
struct Surface {
  // Validates the body and translates it. The document is valid during the call only.
  Result<CanonicalRequest> (*Parse)(const json::Document& body, const ParseContext& context);
  // Null if the API does not stream.
  std::unique_ptr<StreamEncoder> (*MakeStreamEncoder)(const CanonicalRequest& request,
                                                      const ResponseStamp& stamp);
  // Null if the API generates nothing (count_tokens).
  std::unique_ptr<BodyEncoder> (*MakeBodyEncoder)(const CanonicalRequest& request,
                                                  const ResponseStamp& stamp);

  Result<CanonicalRequest> ParseRequest(const json::Document& body,
                                        const ParseContext& context = {}) const {
    return Parse(body, context);
  }
};

}  // namespace tollgate::gateway
