#include "tests/support/sim_net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>

namespace tollgate::test {
namespace {

constexpr size_t kMaxBody = 128u << 20;
constexpr size_t kMaxHead = 64u << 10;
// Granularity of due times, so that one turn serves every stream that is nearly due.
constexpr int64_t kTickUs = 1000;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return lower;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool ParseHead(std::string_view head, SimHttpRequest& request) {
  size_t line_end = head.find("\r\n");
  std::string_view line = head.substr(0, line_end);
  const size_t space = line.find(' ');
  const size_t last = line.rfind(' ');
  if (space == std::string_view::npos || last <= space) return false;
  request.method = line.substr(0, space);
  std::string_view target = line.substr(space + 1, last - space - 1);
  request.path = target.substr(0, target.find('?'));
  while (line_end != std::string_view::npos) {
    const size_t begin = line_end + 2;
    if (begin >= head.size()) break;
    line_end = head.find("\r\n", begin);
    line = head.substr(begin, line_end == std::string_view::npos ? line_end : line_end - begin);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return false;
    request.headers.emplace_back(Lower(line.substr(0, colon)),
                                 std::string(Trim(line.substr(colon + 1))));
  }
  return true;
}

// Length of a complete chunked body at the start of `in`, decoded into `body`; 0: incomplete; npos:
// malformed.
size_t DecodeChunked(std::string_view in, std::string& body) {
  size_t at = 0;
  body.clear();
  while (true) {
    const size_t end = in.find("\r\n", at);
    if (end == std::string_view::npos) return 0;
    size_t length = 0;
    const auto parsed = std::from_chars(in.data() + at, in.data() + end, length, 16);
    if (parsed.ec != std::errc() || length > kMaxBody) return std::string_view::npos;
    at = end + 2;
    if (in.size() < at + length + 2) return 0;
    body.append(in.substr(at, length));
    at += length + 2;
    if (length == 0) return at;
  }
}

sockaddr_in AddressOf(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    address.sin_addr.s_addr = htonl(host == "localhost" ? INADDR_LOOPBACK : INADDR_ANY);
  }
  return address;
}

}  // namespace

int64_t SimNowUs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

std::string_view SimHttpRequest::Header(std::string_view lower_name) const {
  for (const auto& header : headers) {
    if (header.first == lower_name) return header.second;
  }
  return {};
}

SimLoop::SimLoop(Handler* handler) : handler_(handler) {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
}

SimLoop::~SimLoop() {
  CloseAll();
  StopListening();
  close(wake_);
  close(epoll_);
}

bool SimLoop::Listen(const std::string& host, int port, std::string* error) {
  stop_.store(false);  // not in Run: a stop right after the start must not be lost
  host_ = host;
  port_ = port;
  return ListenAgain(error);
}

bool SimLoop::ListenAgain(std::string* error) {
  if (listener_ >= 0) return true;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = AddressOf(host_, port_);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, 4096) != 0) {
    if (error)
      *error =
          "cannot listen on " + host_ + ":" + std::to_string(port_) + ": " + std::strerror(errno);
    close(fd);
    return false;
  }
  socklen_t length = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  port_ = ntohs(address.sin_port);
  listener_ = fd;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  return true;
}

void SimLoop::StopListening() {
  if (listener_ >= 0) close(listener_);
  listener_ = -1;
}

void SimLoop::CloseAll() {
  for (size_t fd = 0; fd < connections_.size(); ++fd) {
    if (connections_[fd]) Close(*connections_[fd], true);
  }
}

void SimLoop::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
}

void SimLoop::RequestStop() {
  stop_.store(true);
  Wake();
}

void SimLoop::Post(std::function<void()> task) {
  {
    std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(task));
  }
  Wake();
}

void SimLoop::SetPaused(bool paused) {
  paused_.store(paused);
  Wake();
}

void SimLoop::Run() {
  std::vector<epoll_event> events(1024);
  while (!stop_.load()) {
    if (paused_.load()) {
      timespec wait{0, 1'000'000};
      nanosleep(&wait, nullptr);
      RunPosted();
      continue;
    }
    const int count =
        epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), TimeoutMs());
    for (int i = 0; i < count && !paused_.load(); ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      const uint32_t what = events[static_cast<size_t>(i)].events;
      if (fd == wake_) {
        uint64_t ignored;
        [[maybe_unused]] const ssize_t got = read(wake_, &ignored, sizeof ignored);
        continue;
      }
      if (fd == listener_) {
        Accept();
        continue;
      }
      SimConnection* connection = Find(fd, 0);
      if (!connection) continue;
      const uint64_t serial = connection->serial;
      if ((what & EPOLLOUT) && Flush(*connection) && !connection->blocked && connection->answer) {
        handler_->OnDrained(*connection);
      }
      connection = Find(fd, serial);
      if (connection && (what & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)))
        OnReadable(*connection);
    }
    RunDue();
    RunPosted();
  }
  CloseAll();
  StopListening();
}

int SimLoop::TimeoutMs() const {
  if (due_.empty()) return -1;
  const int64_t wait = due_.top().at_us - SimNowUs();
  return wait <= 0 ? 0 : static_cast<int>(std::min<int64_t>((wait + 999) / 1000, 60'000));
}

void SimLoop::RunDue() {
  if (due_.empty()) return;
  const int64_t until = SimNowUs();
  while (!due_.empty() && due_.top().at_us <= until) {
    const Due due = due_.top();
    due_.pop();
    if (SimConnection* connection = Find(due.fd, due.serial)) handler_->OnDue(*connection);
  }
}

void SimLoop::RunPosted() {
  std::vector<std::function<void()>> tasks;
  {
    std::lock_guard lock(posted_mutex_);
    tasks.swap(posted_);
  }
  for (auto& task : tasks) task();
}

SimConnection* SimLoop::Find(int fd, uint64_t serial) const {
  if (fd < 0 || static_cast<size_t>(fd) >= connections_.size()) return nullptr;
  SimConnection* connection = connections_[static_cast<size_t>(fd)].get();
  return connection && (serial == 0 || connection->serial == serial) ? connection : nullptr;
}

void SimLoop::Accept() {
  for (int i = 0; i < 256; ++i) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connections_.size() <= static_cast<size_t>(fd))
      connections_.resize(static_cast<size_t>(fd) + 1);
    auto connection = std::make_unique<SimConnection>();
    connection->fd = fd;
    connection->serial = next_serial_++;
    Watch(*connection, false, true);
    connections_[static_cast<size_t>(fd)] = std::move(connection);
    open_.fetch_add(1, std::memory_order_relaxed);
  }
}

void SimLoop::Watch(SimConnection& connection, bool writable, bool add) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (writable ? static_cast<uint32_t>(EPOLLOUT) : 0u);
  event.data.fd = connection.fd;
  epoll_ctl(epoll_, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, connection.fd, &event);
}

void SimLoop::OnReadable(SimConnection& connection) {
  static thread_local std::vector<char> buffer(256 << 10);
  while (true) {
    const ssize_t got = recv(connection.fd, buffer.data(), buffer.size(), 0);
    if (got > 0) {
      connection.in.append(buffer.data(), static_cast<size_t>(got));
      if (connection.in.size() > kMaxBody + kMaxHead) return Close(connection, true);
      if (static_cast<size_t>(got) < buffer.size()) break;
      continue;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    // End of input counts as a disconnect: clients of an engine do not half-close.
    return Close(connection, false);
  }
  if (!connection.answer) ParseRequests(connection);
}

void SimLoop::ParseRequests(SimConnection& connection) {
  const size_t head_end = connection.in.find("\r\n\r\n");
  if (head_end == std::string::npos) {
    if (connection.in.size() > kMaxHead) Close(connection, true);
    return;
  }
  SimHttpRequest request;
  if (!ParseHead(std::string_view(connection.in).substr(0, head_end), request)) {
    return Close(connection, true);
  }
  size_t end = head_end + 4;
  if (Lower(request.Header("transfer-encoding")) == "chunked") {
    const size_t used = DecodeChunked(std::string_view(connection.in).substr(end), request.body);
    if (used == std::string_view::npos) return Close(connection, true);
    if (used == 0) return;
    end += used;
  } else if (const std::string_view length_text = request.Header("content-length");
             !length_text.empty()) {
    size_t length = 0;
    std::from_chars(length_text.data(), length_text.data() + length_text.size(), length);
    if (length > kMaxBody) return Close(connection, true);
    if (connection.in.size() < end + length) {
      connection.in.reserve(end + length);
      return;
    }
    request.body = connection.in.substr(end, length);
    end += length;
  }
  connection.in.erase(0, end);
  connection.close_after_answer = Lower(request.Header("connection")) == "close";
  handler_->OnRequest(connection, std::move(request));
}

void SimLoop::ScheduleAt(SimConnection& connection, int64_t due_us) {
  due_.push({(due_us + kTickUs - 1) / kTickUs * kTickUs, connection.fd, connection.serial});
}

bool SimLoop::Flush(SimConnection& connection) {
  while (connection.unsent() > 0) {
    const ssize_t put = send(connection.fd, connection.out.data() + connection.sent,
                             connection.unsent(), MSG_NOSIGNAL);
    if (put > 0) {
      connection.sent += static_cast<size_t>(put);
      continue;
    }
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) {
      if (!connection.blocked) Watch(connection, true, false);
      connection.blocked = true;
      return true;
    }
    Close(connection, false);
    return false;
  }
  connection.out.clear();
  connection.sent = 0;
  if (connection.blocked) Watch(connection, false, false);
  connection.blocked = false;
  if (connection.close_when_sent) {
    Close(connection, false);
    return false;
  }
  return true;
}

bool SimLoop::EndAnswer(SimConnection& connection) {
  connection.answer.reset();
  if (connection.close_after_answer) connection.close_when_sent = true;
  const uint64_t serial = connection.serial;
  const int fd = connection.fd;
  if (!Flush(connection)) return false;
  if (!connection.in.empty()) ParseRequests(connection);
  return Find(fd, serial) != nullptr;
}

void SimLoop::Close(SimConnection& connection, bool reset) {
  handler_->OnGone(connection);
  if (reset) {
    const linger now{1, 0};
    setsockopt(connection.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  const int fd = connection.fd;
  close(fd);
  open_.fetch_sub(1, std::memory_order_relaxed);
  connections_[static_cast<size_t>(fd)].reset();
}

}  // namespace tollgate::test
