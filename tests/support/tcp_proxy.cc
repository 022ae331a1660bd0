#include "tests/support/tcp_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace tollgate::test {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

}  // namespace

TcpProxy::~TcpProxy() {
  Cut();
  if (listener_ >= 0) close(listener_);
  if (wake_ >= 0) close(wake_);
}

std::string TcpProxy::Start(const std::string& target) {
  target_port_ = std::atoi(target.substr(target.rfind(':') + 1).c_str());
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  wake_ = eventfd(0, EFD_CLOEXEC);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (target_port_ <= 0 || listener_ < 0 || wake_ < 0 ||
      bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 16) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return "";
  }
  thread_ = std::thread([this] { Run(); });
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

void TcpProxy::Wake() {
  const uint64_t one = 1;
  if (wake_ >= 0) (void)!write(wake_, &one, sizeof(one));
}

void TcpProxy::HoldAnswers() {
  hold_answers_ = true;
  Wake();
}

void TcpProxy::Cut() {
  cut_ = true;
  Wake();
  if (thread_.joinable()) thread_.join();
  // New connections are refused, not left waiting.
  if (listener_ >= 0) close(listener_);
  listener_ = -1;
}

void TcpProxy::Run() {
  while (!cut_) {
    std::vector<pollfd> polled = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      polled.push_back({pair.client, POLLIN, 0});
      // A negative descriptor is skipped.
      polled.push_back({hold_answers_ ? -1 : pair.target, POLLIN, 0});
    }
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) break;
    uint64_t ignored = 0;
    if (polled[0].revents != 0) (void)!read(wake_, &ignored, sizeof(ignored));
    std::vector<Pair> open;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const Pair pair = pairs_[i];
      const bool alive =
          (polled[2 + 2 * i].revents == 0 || Forward(pair.client, pair.target)) &&
          (polled[3 + 2 * i].revents == 0 || hold_answers_ || Forward(pair.target, pair.client));
      if (alive) {
        open.push_back(pair);
      } else {
        close(pair.client);
        close(pair.target);
      }
    }
    pairs_ = std::move(open);
    if (polled[1].revents != 0 && !cut_) Accept();
  }
  for (const Pair& pair : pairs_) {
    close(pair.client);
    close(pair.target);
  }
  pairs_.clear();
}

void TcpProxy::Accept() {
  Pair pair;
  pair.client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (pair.client < 0) return;
  pair.target = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(target_port_);
  if (connect(pair.target, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    close(pair.client);
    close(pair.target);
    return;
  }
  pairs_.push_back(pair);
}

bool TcpProxy::Forward(int from, int to) {
  char bytes[16'384];
  const ssize_t size = recv(from, bytes, sizeof(bytes), 0);
  for (ssize_t sent = 0; sent < size;) {
    const ssize_t now = send(to, bytes + sent, static_cast<size_t>(size - sent), MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += now;
  }
  return size > 0;
}

}  // namespace tollgate::test
