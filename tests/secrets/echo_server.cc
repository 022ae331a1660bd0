#include "tests/secrets/echo_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

namespace tollgate::test {
namespace {

constexpr int kPatienceMs = 2'000;

// Reads to the end of the body.
std::string ReadRequest(int socket) {
  std::string text;
  size_t wanted = std::string::npos;
  while (text.size() < wanted) {
    pollfd ready{socket, POLLIN, 0};
    char buffer[16384];
    if (poll(&ready, 1, kPatienceMs) <= 0) break;
    const ssize_t count = read(socket, buffer, sizeof buffer);
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
    const size_t head = text.find("\r\n\r\n");
    if (head == std::string::npos) continue;
    size_t length = text.find("ontent-");
    length = text.find("ength: ", length);
    const int bytes =
        length < head ? std::atoi(text.c_str() + length + std::string("ength: ").size()) : 0;
    wanted = head + 4 + static_cast<size_t>(bytes);
  }
  return text;
}

}  // namespace

EchoServer::EchoServer(int status)
    : status_(status), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(socket_, 64) != 0 ||
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Serve(); });
}

EchoServer::~EchoServer() {
  stopped_ = true;
  thread_.join();
  ::close(socket_);
}

void EchoServer::Serve() {
  while (!stopped_) {
    pollfd ready{socket_, POLLIN, 0};
    if (poll(&ready, 1, 20) <= 0) continue;
    const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    const std::string request = ReadRequest(connection);
    const std::string answer = "HTTP/1.1 " + std::to_string(status_) +
                               " Echo\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                               "Content-Length: " +
                               std::to_string(request.size()) + "\r\n\r\n" + request;
    for (size_t sent = 0; sent < answer.size();) {
      const ssize_t count =
          ::send(connection, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) break;
      sent += static_cast<size_t>(count);
    }
    ++requests_;
    ::close(connection);
  }
}

}  // namespace tollgate::test
