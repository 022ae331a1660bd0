// An HTTP request and its response, as handlers see them: without sockets.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/id.h"
#include "common/base/memory_budget.h"
#include "common/runtime/loop.h"
#include "common/runtime/task.h"

namespace tollgate::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;
  std::string path;   // as sent, never normalised, without the query
  std::string query;  // without "?"
  Headers headers;    // names in lower case
  std::string body;
  // Created by the server for each request.
  Id id;
  // The well-formed id of this request for logs and support (decision 26): the client's
  // X-Request-Id, or "req_" and id in base62.
  std::string x_request_id;
  // Whether the request had an X-Request-Id header (Messages errors echo it only then).
  bool x_request_id_was_sent = false;
  // The client address: the peer of the connection, or the address that a trusted proxy forwards.
  std::string peer_address;
  // Set by the code that routes requests; initially -1.
  int route = -1;
  // State that the routing code keeps with the request; initially null.
  std::shared_ptr<void> attachment;

  // The value of a header; empty if it is absent.
  std::string_view header(std::string_view lower_name) const {
    for (const auto& [name, value] : headers) {
      if (name == lower_name) return value;
    }
    return {};
  }
};

struct HttpResponse {
  int status = 200;
  // Without content-length, date, x-request-id and request-id, which the server adds.
  Headers headers;
  std::string body;
};

// Lives on one loop until its handler returns. A handler calls either Send, or BeginStream and then
// EndStream or Abort.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const HttpRequest& request() const = 0;
  // The body may be moved out.
  virtual HttpRequest& mutable_request() = 0;
  virtual Loop& loop() = 0;
  // The budget for the memory of requests, for a handler that makes a body larger; null: none.
  // Valid during the exchange.
  virtual MemoryBudget* memory() { return nullptr; }

  // Sends a whole response. Returns false if the client disconnected.
  virtual Task<bool> Send(HttpResponse response) = 0;
  // Starts a chunked response. Returns false if the client disconnected.
  virtual Task<bool> BeginStream(int status, Headers headers) = 0;
  // Sends bytes as one chunk in one write. Completes when the socket has accepted them, so a slow
  // client applies back-pressure. Returns false if the client disconnected.
  virtual Task<bool> Write(std::string bytes) = 0;
  // Sets the fields that follow the last chunk of a stream. Call it before EndStream. Without
  // chunking (HTTP/1.0) they are omitted. A Trailer header should announce their names.
  virtual void SetTrailers(Headers trailers) {}
  // Ends a stream; the connection may be reused.
  virtual Task<void> EndStream() = 0;
  // Ends a stream with an error: closes the connection without the last chunk.
  virtual void Abort() = 0;

  // Sets a callback that runs once, on the loop, when the client disconnects; at once if it already
  // has. A later call replaces it, and an empty callback removes it. It is removed when the handler
  // returns.
  virtual void OnDisconnect(std::function<void()> callback) = 0;
  virtual bool disconnected() const = 0;

  // Sets a callback that runs once, on the loop, when the time of a drain is over; at once if it
  // already is. The handler should then end its response with an error: soon after, the server
  // closes the connection. A later call replaces it. It is removed when the handler returns.
  virtual void OnDrainOver(std::function<void()> callback) {}
  virtual bool drain_over() const { return false; }
};

}  // namespace tollgate::http
