// A small blocking HTTP/1.1 client for tests that can also send hostile bytes, with a
// server-sent-event reader. Shares no code with the product.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/json.h"

namespace tollgate::test {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  int status = 0;      // 0: no response (connection refused, closed or timed out before the head)
  HeaderList headers;  // names in lower case
  std::string body;
  bool complete = false;  // the body ended properly
  std::string error;      // why there is no response, or no complete one

  const std::string& header(std::string_view lower_name) const;
  bool has_header(std::string_view lower_name) const;
  Json json() const { return Json::Parse(body).value_or(Json()); }
};

// One event of a stream, with the time its last byte was read (monotonic microseconds).
struct SseEvent {
  std::string event;
  std::string data;
  int64_t at_us = 0;
  Json json() const { return Json::Parse(data).value_or(Json()); }
};

// One TCP connection. Every call is bounded by the timeout.
class HttpConnection {
 public:
  explicit HttpConnection(int port, int64_t timeout_ms = 60'000);
  HttpConnection(const std::string& host, int port, int64_t timeout_ms);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  bool connected() const { return fd_ >= 0; }
  bool Send(std::string_view bytes);
  // Sends a request with Host and, when there is a body, Content-Length.
  bool SendRequest(const std::string& method, const std::string& target,
                   const HeaderList& headers = {}, const std::string& body = "");
  // Reads the head (skipping 100 Continue).
  HttpResponse ReadHead();
  // Reads head and whole body.
  HttpResponse ReadResponse();
  HttpResponse Request(const std::string& method, const std::string& target,
                       const HeaderList& headers = {}, const std::string& body = "");
  // After ReadHead of a stream: the next event, comments skipped (and counted). Empty at the end.
  std::optional<SseEvent> NextEvent();
  // Decoded body bytes that have arrived, waiting for at least one. Empty at the end.
  std::string ReadSome();
  // True when the server closed the connection (waits for it up to the timeout).
  bool ReadUntilClosed();
  bool ended_properly() const { return body_complete_; }
  int64_t comments() const { return comments_; }
  const std::string& error() const { return error_; }
  // Closes with a FIN, or with reset with a RST.
  void Close(bool reset = false);
  // A small receive buffer makes backpressure of a slow reader effective early.
  static void SetReceiveBuffer(
      int bytes);  // for connections made afterwards on this thread; 0: default
  int fd() const { return fd_; }

 private:
  bool Fill();  // reads once into in_; false at end, error or timeout
  bool FillUntil(std::string_view mark, size_t& at);
  void StartBody(const HttpResponse& head);
  bool MoreBody(std::string& out);

  int fd_ = -1;
  int64_t timeout_ms_;
  std::string in_;
  bool closed_ = false;
  bool chunked_ = false;
  bool until_close_ = false;
  int64_t rest_ = 0;  // bytes left of the body or chunk
  bool body_complete_ = false;
  std::string events_;  // decoded, not yet split into events
  int64_t comments_ = 0;
  std::string error_;
};

// One request on a new connection.
HttpResponse Http(int port, const std::string& method, const std::string& target,
                  const HeaderList& headers = {}, const std::string& body = "",
                  int64_t timeout_ms = 60'000);

// A whole stream.
struct SseStream {
  HttpResponse head;  // its body when the response is not a stream
  std::vector<SseEvent> events;
  bool complete = false;  // the transfer ended properly
  bool done() const;      // the last event is [DONE]
  // Concatenation of choices[0].delta.<member> (or choices[0].text with member "text").
  std::string Text(const std::string& member = "content", int choice = 0) const;
  std::string FinishReason(int choice = 0) const;
  Json Usage() const;  // of the last chunk that has one
};
SseStream HttpStream(int port, const std::string& target, const HeaderList& headers,
                     const std::string& body, int64_t timeout_ms = 60'000);

int64_t MonotonicUs();

}  // namespace tollgate::test
