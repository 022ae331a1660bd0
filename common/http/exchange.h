// One HTTP request and the answer to it, as everything behind a server sees them: no sockets.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  // The id of this request for people and logs (decisions.md 26), well-formed.
  std::string x_request_id;
  // Whether the request had an X-Request-Id header (Messages errors echo it only then).
  bool x_request_id_was_sent = false;
  // Where it came from: the connection's peer, or who stands behind a trusted proxy.
  std::string peer_address;
  // Free for the code that routes requests: -1 until it writes here.
  int route = -1;

  // The value of a header given in lower case; empty when absent.
  std::string_view header(std::string_view lower_name) const {
    for (const auto& [name, value] : headers) {
      if (name == lower_name) return value;
    }
    return {};
  }
};

struct HttpResponse {
  int status = 200;
  // Besides content-length, date, x-request-id and request-id, which the server adds.
  Headers headers;
  std::string body;
};

// Lives on one loop until its handler returns. Exactly one of Send, or BeginStream …
// EndStream/Abort.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const HttpRequest& request() const = 0;
  // The request's body may be moved out once it has been looked at.
  virtual HttpRequest& mutable_request() = 0;
  virtual Loop& loop() = 0;

  // Sends a whole answer. False: the client has gone.
  virtual Task<bool> Send(HttpResponse response) = 0;
  // Starts a chunked answer.
  virtual Task<bool> BeginStream(int status, Headers headers) = 0;
  // Sends bytes as one chunk in one write. Returns when the socket has taken them, so a slow client
  // holds its producer back. False: the client has gone.
  virtual Task<bool> Write(std::string bytes) = 0;
  // Ends a stream well; the connection may be used again.
  virtual Task<void> EndStream() = 0;
  // Ends a stream badly: closes the connection without the last chunk.
  virtual void Abort() = 0;

  // Called once, on the loop, when the client is found to have gone. At once if it already has. The
  // last callback set counts; an empty one takes it back. Dropped when the handler returns.
  virtual void OnDisconnect(std::function<void()> callback) = 0;
  virtual bool disconnected() const = 0;
};

}  // namespace tollgate::http
