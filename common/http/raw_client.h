// For tests: a plain blocking socket, so that a test says byte for byte what goes over the wire.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tollgate::http::testing {

class RawClient {
 public:
  explicit RawClient(uint16_t port, int receive_buffer = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void CloseWithReset() {
    linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    Close();
  }
  void HalfClose() { ::shutdown(fd_, SHUT_WR); }

  // False when the peer no longer takes bytes.
  bool Write(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void WriteByteByByte(std::string_view bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (!Write(bytes.substr(i, 1))) return;
    }
  }

  // Reads until the text has come, the peer has closed, or the time is over; what came, all told.
  const std::string& ReadUntil(std::string_view text, int timeout_ms = 5000) {
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (!closed_ && (text.empty() || received_.find(text) == std::string::npos)) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      pollfd wanted{fd_, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&wanted, 1, static_cast<int>(left.count())) <= 0) break;
      char buffer[16 * 1024];
      ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) {
        closed_ = true;
        reset_ = got < 0;
        break;
      }
      received_.append(buffer, static_cast<size_t>(got));
    }
    return received_;
  }
  // Reads until the peer closes.
  const std::string& ReadToEnd(int timeout_ms = 5000) { return ReadUntil("", timeout_ms); }
  const std::string& received() const { return received_; }
  void Forget() { received_.clear(); }
  // Whether the peer has closed, as far as was read.
  bool closed() const { return closed_; }
  bool reset() const { return reset_; }

 private:
  int fd_ = -1;
  bool connected_ = false;
  bool closed_ = false;
  bool reset_ = false;
  std::string received_;
};

// How often the text stands in there.
inline int Count(std::string_view where, std::string_view text) {
  int count = 0;
  for (size_t at = where.find(text); at != std::string_view::npos; at = where.find(text, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace tollgate::http::testing
