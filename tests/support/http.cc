#include "tests/support/http.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace tollgate::test {
namespace {

thread_local int receive_buffer = 0;

std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

}  // namespace

int64_t MonotonicUs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

const std::string& HttpResponse::header(std::string_view lower_name) const {
  static const std::string kNone;
  for (const auto& header : headers) {
    if (header.first == lower_name) return header.second;
  }
  return kNone;
}

bool HttpResponse::has_header(std::string_view lower_name) const {
  return std::any_of(headers.begin(), headers.end(),
                     [&](const auto& header) { return header.first == lower_name; });
}

void HttpConnection::SetReceiveBuffer(int bytes) { receive_buffer = bytes; }

HttpConnection::HttpConnection(int port, int64_t timeout_ms)
    : HttpConnection("127.0.0.1", port, timeout_ms) {}

HttpConnection::HttpConnection(const std::string& host, int port, int64_t timeout_ms)
    : timeout_ms_(timeout_ms) {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_buffer > 0)
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  const timeval limit{timeout_ms / 1000, timeout_ms % 1000 * 1000};
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  addrinfo hints{};
  hints.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) == 0) {
    address.sin_addr = reinterpret_cast<sockaddr_in*>(found->ai_addr)->sin_addr;
    freeaddrinfo(found);
  }
  if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    error_ = std::string("connect: ") + std::strerror(errno);
    close(fd_);
    fd_ = -1;
  }
}

HttpConnection::~HttpConnection() { Close(); }

void HttpConnection::Close(bool reset) {
  if (fd_ < 0) return;
  if (reset) {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  close(fd_);
  fd_ = -1;
}

bool HttpConnection::Send(std::string_view bytes) {
  if (fd_ < 0) return false;
  while (!bytes.empty()) {
    const ssize_t put = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      error_ = std::string("send: ") + std::strerror(errno);
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

bool HttpConnection::SendRequest(const std::string& method, const std::string& target,
                                 const HeaderList& headers, const std::string& body) {
  std::string text = method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  for (const auto& header : headers) text += header.first + ": " + header.second + "\r\n";
  if (!body.empty() || method == "POST")
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return Send(text + "\r\n" + body);
}

bool HttpConnection::Fill() {
  if (fd_ < 0 || closed_) return false;
  pollfd wait{fd_, POLLIN, 0};
  const int64_t deadline = MonotonicUs() + timeout_ms_ * 1000;
  while (true) {
    const int64_t left = std::max<int64_t>(0, (deadline - MonotonicUs()) / 1000);
    const int ready = poll(&wait, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      error_ = "timed out";
      return false;
    }
    char buffer[65536];
    const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      closed_ = true;
      error_ = got == 0 ? "closed" : std::string("recv: ") + std::strerror(errno);
      return false;
    }
    in_.append(buffer, static_cast<size_t>(got));
    return true;
  }
}

bool HttpConnection::FillUntil(std::string_view mark, size_t& at) {
  while ((at = in_.find(mark)) == std::string::npos) {
    if (!Fill()) return false;
  }
  return true;
}

HttpResponse HttpConnection::ReadHead() {
  HttpResponse response;
  while (true) {
    size_t end = 0;
    if (!FillUntil("\r\n\r\n", end)) {
      response.error = error_;
      return response;
    }
    const std::string head = in_.substr(0, end);
    in_.erase(0, end + 4);
    response.status = head.size() > 12 ? std::atoi(head.c_str() + 9) : 0;
    if (response.status == 100) continue;
    response.headers.clear();
    for (size_t line = head.find("\r\n"); line != std::string::npos;) {
      const size_t next = head.find("\r\n", line + 2);
      const std::string text =
          head.substr(line + 2, next == std::string::npos ? next : next - line - 2);
      const size_t colon = text.find(':');
      if (colon != std::string::npos) {
        const size_t value = text.find_first_not_of(" \t", colon + 1);
        response.headers.emplace_back(Lower(text.substr(0, colon)),
                                      value == std::string::npos ? "" : text.substr(value));
      }
      line = next;
    }
    StartBody(response);
    return response;
  }
}

void HttpConnection::StartBody(const HttpResponse& head) {
  events_.clear();
  rest_ = 0;
  chunked_ = Lower(head.header("transfer-encoding")) == "chunked";
  const bool sized = head.has_header("content-length");
  until_close_ = !chunked_ && !sized && head.status != 204 && head.status != 304;
  if (sized) rest_ = std::atoll(head.header("content-length").c_str());
  body_complete_ = !chunked_ && !until_close_ && rest_ == 0;
}

// Appends decoded bytes, at least one unless the body has ended. False at its end.
bool HttpConnection::MoreBody(std::string& out) {
  while (!body_complete_) {
    if (chunked_ && rest_ == 0) {
      size_t end = 0;
      if (!FillUntil("\r\n", end)) return false;
      rest_ = std::strtoll(in_.c_str(), nullptr, 16);
      in_.erase(0, end + 2);
      if (rest_ == 0) {
        if (!FillUntil("\r\n", end)) return false;
        in_.erase(0, end + 2);
        body_complete_ = true;
        return false;
      }
    }
    if (in_.empty() && !Fill()) {
      if (until_close_ && closed_) body_complete_ = true;
      return false;
    }
    const size_t take =
        until_close_ ? in_.size() : std::min(in_.size(), static_cast<size_t>(rest_));
    out.append(in_, 0, take);
    in_.erase(0, take);
    if (!until_close_) rest_ -= static_cast<int64_t>(take);
    if (rest_ == 0 && chunked_) {
      size_t end = 0;
      if (!FillUntil("\r\n", end)) return take > 0;
      in_.erase(0, end + 2);
    }
    if (rest_ == 0 && !chunked_ && !until_close_) body_complete_ = true;
    if (take > 0) return true;
  }
  return false;
}

std::string HttpConnection::ReadSome() {
  std::string out;
  MoreBody(out);
  return out;
}

namespace {

// Writes errors for the search of tests/secrets, in one write each: tests run in parallel.
void KeepError(const HttpResponse& response) {
  const char* folder = std::getenv("TOLLGATE_TEST_LOGS");
  if (folder == nullptr || response.status < 400 || response.body.empty()) return;
  const std::string path = std::string(folder) + "/" + std::to_string(getpid()) + ".errors";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  const std::string line = std::to_string(response.status) + " " + response.body + "\n";
  if (write(file, line.data(), line.size()) < 0) std::abort();
  close(file);
}

}  // namespace

HttpResponse HttpConnection::ReadResponse() {
  HttpResponse response = ReadHead();
  if (response.status == 0) return response;
  while (MoreBody(response.body)) {
  }
  response.complete = body_complete_;
  if (!body_complete_) response.error = error_;
  KeepError(response);
  return response;
}

HttpResponse HttpConnection::Request(const std::string& method, const std::string& target,
                                     const HeaderList& headers, const std::string& body) {
  if (!SendRequest(method, target, headers, body)) {
    // A response may have arrived: a server may refuse before it has read the whole body.
    HttpResponse early = ReadResponse();
    if (early.status == 0) early.error = error_;
    return early;
  }
  return ReadResponse();
}

std::optional<SseEvent> HttpConnection::NextEvent() {
  while (true) {
    const size_t end = events_.find("\n\n");
    if (end == std::string::npos) {
      if (!MoreBody(events_)) return std::nullopt;
      continue;
    }
    SseEvent event;
    event.at_us = MonotonicUs();
    bool any = false;
    for (size_t at = 0; at < end;) {
      const size_t line_end = std::min(events_.find('\n', at), end);
      const std::string line = events_.substr(at, line_end - at);
      at = line_end + 1;
      if (line.rfind("data: ", 0) == 0) {
        event.data += line.substr(6);
        any = true;
      } else if (line.rfind("event: ", 0) == 0) {
        event.event = line.substr(7);
        any = true;
      } else if (line[0] == ':') {
        ++comments_;
      }
    }
    events_.erase(0, end + 2);
    if (any) return event;
  }
}

bool HttpConnection::ReadUntilClosed() {
  while (Fill()) {
  }
  return closed_;
}

HttpResponse Http(int port, const std::string& method, const std::string& target,
                  const HeaderList& headers, const std::string& body, int64_t timeout_ms) {
  HttpConnection connection(port, timeout_ms);
  if (!connection.connected()) {
    HttpResponse response;
    response.error = connection.error();
    return response;
  }
  return connection.Request(method, target, headers, body);
}

SseStream HttpStream(int port, const std::string& target, const HeaderList& headers,
                     const std::string& body, int64_t timeout_ms) {
  SseStream stream;
  HttpConnection connection(port, timeout_ms);
  if (!connection.SendRequest("POST", target, headers, body)) {
    stream.head.error = connection.error();
    return stream;
  }
  stream.head = connection.ReadHead();
  if (stream.head.header("content-type").rfind("text/event-stream", 0) != 0) {
    for (std::string more; !(more = connection.ReadSome()).empty();) stream.head.body += more;
  } else {
    while (std::optional<SseEvent> event = connection.NextEvent())
      stream.events.push_back(std::move(*event));
  }
  stream.complete = connection.ended_properly();
  if (!stream.complete) stream.head.error = connection.error();
  return stream;
}

bool SseStream::done() const { return !events.empty() && events.back().data == "[DONE]"; }

std::string SseStream::Text(const std::string& member, int choice) const {
  std::string text;
  for (const SseEvent& event : events) {
    const Json chunk = event.json();
    for (const Json& one : chunk["choices"].elements()) {
      if (one["index"].integer() != choice) continue;
      text += member == "text" ? one["text"].str() : one["delta"][std::string_view(member)].str();
    }
  }
  return text;
}

std::string SseStream::FinishReason(int choice) const {
  std::string reason;
  for (const SseEvent& event : events) {
    const Json chunk = event.json();
    for (const Json& one : chunk["choices"].elements()) {
      if (one["index"].integer() == choice && one["finish_reason"].is_string())
        reason = one["finish_reason"].str();
    }
  }
  return reason;
}

Json SseStream::Usage() const {
  Json usage;
  for (const SseEvent& event : events) {
    const Json chunk = event.json();
    if (chunk["usage"].is_object()) usage = chunk["usage"];
  }
  return usage;
}

}  // namespace tollgate::test
