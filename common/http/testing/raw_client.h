// For tests: a blocking socket, with or without TLS, that controls every byte on the wire.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace tollgate::http::testing {

class RawClient {
 public:
  enum class Transport { kPlain, kTls };

  // source: the address to connect from, such as "127.0.0.2".
  explicit RawClient(uint16_t port, int receive_buffer = 0, Transport transport = Transport::kPlain,
                     const char* source = "127.0.0.1") {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::inet_addr(source);
    ::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    if (transport == Transport::kTls && connected_) StartTls();
  }
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }
  // Closes without close_notify, like a killed process.
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    SSL_free(ssl_);
    ssl_ = nullptr;
  }
  void CloseWithReset() {
    linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    Close();
  }
  void HalfClose() {
    if (ssl_ != nullptr) SSL_shutdown(ssl_);
    ::shutdown(fd_, SHUT_WR);
  }
  // The negotiated version, for example "TLSv1.3"; "" in plain text.
  std::string tls_version() const { return ssl_ == nullptr ? "" : SSL_get_version(ssl_); }
  // Whether the peer sent close_notify before it closed.
  bool closed_by_tls() const { return closed_by_tls_; }

  // Returns false if the connection is closed.
  bool Write(std::string_view bytes) {
    if (ssl_ != nullptr) return WriteTls(bytes);
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

  // Reads until the text has arrived, the peer has closed, or the timeout. Returns all received
  // bytes.
  const std::string& ReadUntil(std::string_view text, int timeout_ms = 60'000) {
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (!closed_ && (text.empty() || received_.find(text) == std::string::npos)) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      char buffer[16 * 1024];
      ssize_t got = ssl_ != nullptr ? ReadTls(buffer, sizeof buffer) : kWouldBlock;
      if (got == kWouldBlock) {
        pollfd wanted{fd_, POLLIN, 0};
        if (left.count() <= 0 || ::poll(&wanted, 1, static_cast<int>(left.count())) <= 0) break;
        if (ssl_ != nullptr) continue;
        got = ::recv(fd_, buffer, sizeof buffer, 0);
      }
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
  const std::string& ReadToEnd(int timeout_ms = 60'000) { return ReadUntil("", timeout_ms); }
  const std::string& received() const { return received_; }
  void ClearReceived() { received_.clear(); }
  // Whether a read has reached the end of the connection.
  bool closed() const { return closed_; }
  bool reset() const { return reset_; }

 private:
  static constexpr ssize_t kWouldBlock = -2;

  void StartTls() {
    static SSL_CTX* const context = [] {
      std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
      SSL_CTX* made = SSL_CTX_new(TLS_client_method());
      SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
      return made;
    }();
    ssl_ = SSL_new(context);
    SSL_set_fd(ssl_, fd_);
    connected_ = SSL_connect(ssl_) == 1;
    ::fcntl(fd_, F_SETFL, O_NONBLOCK);  // so that one thread can read while another writes
  }
  bool WriteTls(std::string_view bytes) {
    while (!bytes.empty()) {
      size_t sent = 0;
      {
        std::lock_guard lock(mutex_);
        if (SSL_write_ex(ssl_, bytes.data(), bytes.size(), &sent) != 1 &&
            SSL_get_error(ssl_, 0) != SSL_ERROR_WANT_WRITE) {
          return false;
        }
      }
      bytes.remove_prefix(sent);
      pollfd wanted{fd_, POLLOUT, 0};
      if (sent == 0 && ::poll(&wanted, 1, 60'000) <= 0) return false;
    }
    return true;
  }
  ssize_t ReadTls(char* buffer, size_t size) {
    std::lock_guard lock(mutex_);
    size_t got = 0;
    if (SSL_read_ex(ssl_, buffer, size, &got) == 1) return static_cast<ssize_t>(got);
    const int error = SSL_get_error(ssl_, 0);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return kWouldBlock;
    closed_by_tls_ = error == SSL_ERROR_ZERO_RETURN;
    return error == SSL_ERROR_SYSCALL ? -1 : 0;
  }

  int fd_ = -1;
  SSL* ssl_ = nullptr;
  std::mutex mutex_;  // guards ssl_
  bool closed_by_tls_ = false;
  bool connected_ = false;
  bool closed_ = false;
  bool reset_ = false;
  std::string received_;
};

// Counts the occurrences of `text`.
inline int Count(std::string_view where, std::string_view text) {
  int count = 0;
  for (size_t at = where.find(text); at != std::string_view::npos; at = where.find(text, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace tollgate::http::testing
