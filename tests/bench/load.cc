#include "tests/bench/load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "tests/bench/answer_reader.h"

namespace tollgate::bench {
namespace {

struct Connection {
  int fd = -1;
  bool busy = false;
  std::string_view request;
  size_t sent = 0;
  AnswerReader reader;
};

class Generator {
 public:
  explicit Generator(const LoadOptions& options)
      : options_(options), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}
  ~Generator() {
    for (auto& connection : connections_) Drop(*connection);
    close(epoll_);
  }
  LoadReport Run();

 private:
  Connection* Open();
  void Drop(Connection& connection);
  bool Start(Connection& connection, int64_t due_us);
  bool Send(Connection& connection);
  void Readable(Connection& connection);
  void Finished(Connection& connection, bool ok, const std::string& why);
  void StartWhatIsDue(int64_t now_us);
  bool InWindow(int64_t now_us) const { return now_us >= window_begin_ && now_us < window_end_; }

  const LoadOptions& options_;
  int epoll_;
  size_t next_request_ = 0;
  LoadReport report_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> idle_;
  int64_t begin_ = 0;
  int64_t window_begin_ = 0;
  int64_t window_end_ = 0;
  int64_t started_ = 0;
  std::vector<char> buffer_ = std::vector<char>(256 << 10);
};

Connection* Generator::Open() {
  auto connection = std::make_unique<Connection>();
  connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(options_.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // Blocking: on loopback it costs nothing and happens before the measurement window.
  if (connect(connection->fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if (report_.first_error.empty())
      report_.first_error = std::string("connect: ") + std::strerror(errno);
    close(connection->fd);
    ++report_.errors;
    return nullptr;
  }
  const int on = 1;
  setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = connection.get();
  epoll_ctl(epoll_, EPOLL_CTL_ADD, connection->fd, &event);
  connections_.push_back(std::move(connection));
  return connections_.back().get();
}

void Generator::Drop(Connection& connection) {
  if (connection.fd >= 0) close(connection.fd);
  connection.fd = -1;
}

bool Generator::Start(Connection& connection, int64_t due_us) {
  connection.busy = true;
  connection.request = options_.requests[next_request_++ % options_.requests.size()];
  connection.sent = 0;
  connection.reader.Start(due_us);
  return Send(connection);
}

bool Generator::Send(Connection& connection) {
  // The request fits the socket buffer or the server reads it meanwhile: sending blocks only
  // briefly.
  while (connection.sent < connection.request.size()) {
    const ssize_t put = send(connection.fd, connection.request.data() + connection.sent,
                             connection.request.size() - connection.sent, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      Finished(connection, false, "send failed");
      return false;
    }
    connection.sent += static_cast<size_t>(put);
  }
  return true;
}

void Generator::Readable(Connection& connection) {
  const ssize_t got = recv(connection.fd, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const int64_t now = NowUs();
  if (got <= 0) {
    if (connection.busy)
      return Finished(connection, false, "connection closed within the response");
    Drop(connection);
    idle_.erase(std::remove(idle_.begin(), idle_.end(), &connection), idle_.end());
    return;
  }
  if (!connection.busy) return;
  const auto state = connection.reader.Take({buffer_.data(), static_cast<size_t>(got)}, now,
                                            InWindow(now), report_);
  if (state == AnswerReader::State::kMore) return;
  if (state == AnswerReader::State::kBroken) return Finished(connection, false, "malformed answer");
  const bool ok = connection.reader.ok();
  if (InWindow(now) && ok) {
    ++report_.requests;
    report_.latency.Add(now - connection.reader.due_us());
  }
  Finished(connection, ok, "status " + std::to_string(connection.reader.status()));
}

void Generator::Finished(Connection& connection, bool ok, const std::string& why) {
  connection.busy = false;
  const int64_t now = NowUs();
  if (!ok) {
    ++report_.errors;
    if (report_.first_error.empty()) report_.first_error = why;
    Drop(connection);
  }
  if (now >= window_end_) return;
  Connection* next = &connection;
  if (connection.fd < 0 && options_.mode != Mode::kOpen) next = Open();
  if (options_.mode == Mode::kOpen) {
    if (connection.fd >= 0) idle_.push_back(&connection);
  } else if (next && report_.errors < 10'000) {
    Start(*next, now);
  }
}

void Generator::StartWhatIsDue(int64_t now_us) {
  if (options_.mode == Mode::kStreams) {
    // Spread over the first half of the warm-up, so that tokens of different streams do not
    // coincide.
    const int64_t ramp = std::max<int64_t>(options_.warmup_ms * 1000 / 2, 1);
    while (started_ < options_.connections &&
           now_us >= begin_ + started_ * ramp / options_.connections) {
      ++started_;
      if (Connection* connection = Open()) Start(*connection, NowUs());
    }
  }
  if (options_.mode != Mode::kOpen) return;
  while (now_us < window_end_) {
    const int64_t due =
        begin_ + static_cast<int64_t>(static_cast<double>(started_) * 1e6 / options_.rate);
    if (due > now_us) break;
    ++started_;
    Connection* connection = nullptr;
    if (!idle_.empty()) {
      connection = idle_.back();
      idle_.pop_back();
    } else if (static_cast<int>(connections_.size()) < options_.connections) {
      connection = Open();
    }
    if (connection)
      Start(*connection, due);
    else
      ++report_.late;
  }
}

LoadReport Generator::Run() {
  report_.rss_before = RssOf(options_.pids);
  begin_ = NowUs();
  window_begin_ = begin_ + options_.warmup_ms * 1000;
  window_end_ = window_begin_ + options_.window_ms * 1000;
  if (options_.mode == Mode::kClosed) {
    for (int i = 0; i < options_.connections; ++i) {
      if (Connection* connection = Open()) Start(*connection, NowUs());
    }
  }
  const bool timed = options_.mode != Mode::kClosed;
  int64_t cpu_begin = -1;
  int64_t really_begun = 0;
  std::vector<epoll_event> events(2048);
  while (true) {
    int64_t now = NowUs();
    StartWhatIsDue(now);
    now = NowUs();
    if (cpu_begin < 0 && now >= window_begin_) {
      cpu_begin = CpuUsOf(options_.pids);
      really_begun = now;
    }
    if (now >= window_end_) break;
    const int64_t edge = (cpu_begin < 0 ? window_begin_ : window_end_) - now;
    const int wait = static_cast<int>(std::min<int64_t>(timed ? 1 : 10, edge / 1000 + 1));
    const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait);
    for (int i = 0; i < count; ++i) {
      auto* connection = static_cast<Connection*>(events[static_cast<size_t>(i)].data.ptr);
      if (connection->fd >= 0) Readable(*connection);
    }
  }
  report_.cpu_us = CpuUsOf(options_.pids) - cpu_begin;
  report_.seconds = static_cast<double>(NowUs() - really_begun) / 1e6;
  report_.rss_after = RssOf(options_.pids);
  for (const auto& connection : connections_)
    report_.open_at_end += connection->busy && connection->fd >= 0 ? 1 : 0;
  return std::move(report_);
}

}  // namespace

LoadReport RunLoad(const LoadOptions& options) { return Generator(options).Run(); }

}  // namespace tollgate::bench
