#include "tests/support/port.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

namespace tollgate::test {
namespace {

constexpr int kFirst = 10'000;
constexpr int kEnd = 32'768;    // Linux's default for the first port of connections
constexpr int kFewest = 2'000;  // ports to choose from

// Begin of the kernel's own range of ports.
int End() {
  int low = kEnd;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> low;
  return low >= kFirst + kFewest ? low : kEnd;
}

// Binds a socket to a name for this port in the kernel's abstract namespace: another process cannot
// take the name, and it is released when this process ends. -1: the name is taken.
int Reserve(int port) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const int length =
      std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "tollgate-test-port-%d", port);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&name), size) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

// Whether no program uses the port.
bool Free(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  const bool free = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (fd >= 0) close(fd);
  return free;
}

}  // namespace

TestPort::TestPort() {
  static const int end = End();
  // Processes begin at different ports.
  static std::atomic<unsigned> next{static_cast<unsigned>(getpid()) * 97u};
  for (int attempt = kFirst; attempt < end; ++attempt) {
    const int port = kFirst + static_cast<int>(next++ % static_cast<unsigned>(end - kFirst));
    reservation_ = Reserve(port);
    if (reservation_ < 0) continue;
    number_ = port;
    if (Free(port)) return;
    close(std::exchange(reservation_, -1));
  }
  std::fputs("no free port for a test\n", stderr);
  std::abort();
}

TestPort::~TestPort() {
  if (reservation_ >= 0) close(reservation_);
}

TestPort::TestPort(TestPort&& other) noexcept
    : number_(other.number_), reservation_(std::exchange(other.reservation_, -1)) {}

TestPort& TestPort::operator=(TestPort&& other) noexcept {
  std::swap(number_, other.number_);
  std::swap(reservation_, other.reservation_);
  return *this;
}

}  // namespace tollgate::test
