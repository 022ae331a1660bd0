#include "tests/support/port.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <vector>

namespace tollgate::test {
namespace {

int Listen(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0) {
    return fd;
  }
  close(fd);
  return -1;
}

// Ports that the kernel assigns to connections could be taken while a server is stopped.
TEST(TestPort, IsBelowThePortsOfConnections) {
  int low = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> low;
  if (low < 12'000) GTEST_SKIP() << "connections of this machine begin at " << low;
  for (int i = 0; i < 100; ++i) {
    const TestPort port;
    EXPECT_GE(port.number(), 10'000);
    EXPECT_LT(port.number(), low);
  }
}

// As many processes as run at a time, each with as many ports as a large cluster: no port is taken
// twice, although none is in use.
TEST(TestPort, IsTakenByOneProcessOnly) {
  constexpr int kProcesses = 4, kPorts = 200;
  int lines[2];
  ASSERT_EQ(pipe(lines), 0);
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  for (int p = 0; p < kProcesses; ++p) {
    if (fork() != 0) continue;
    close(done[1]);
    std::vector<TestPort> ports(kPorts);
    for (const TestPort& port : ports) {
      const int number = port.number();
      (void)!write(lines[1], &number, sizeof number);
    }
    char none;
    (void)!read(done[0], &none, 1);  // each process keeps its ports until all have theirs
    _exit(0);
  }
  std::set<int> numbers;
  for (int i = 0; i < kProcesses * kPorts; ++i) {
    int number = 0;
    ASSERT_EQ(read(lines[0], &number, sizeof number), static_cast<ssize_t>(sizeof number));
    EXPECT_TRUE(numbers.insert(number).second) << number << " twice";
  }
  close(done[1]);
  for (int p = 0; p < kProcesses; ++p) wait(nullptr);
  for (const int fd : {lines[0], lines[1], done[0]}) close(fd);
}

TEST(TestPort, IsOneThatNobodyListensOn) {
  TestPort first;
  const int listener = Listen(first.number());
  ASSERT_GE(listener, 0);
  const int number = first.number();
  first = TestPort();  // released, but the listener stays
  for (int i = 0; i < 30'000; ++i) ASSERT_NE(TestPort().number(), number);
  close(listener);
}

}  // namespace
}  // namespace tollgate::test
