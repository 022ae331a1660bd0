#include "common/http/keep_alive.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace tollgate::http {
namespace {

int Option(int fd, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(fd, level, name, &value, &size), 0);
  return value;
}

// The loss of a peer is detected within about a minute, whether the connection is idle or waits for
// an acknowledgement.
TEST(KeepAliveTest, LostPeersAreNoticedWithinAMinute) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_GE(fd, 0);
  NoticeLostPeers(fd);
  EXPECT_EQ(Option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_LE(Option(fd, IPPROTO_TCP, TCP_KEEPIDLE) +
                Option(fd, IPPROTO_TCP, TCP_KEEPINTVL) * Option(fd, IPPROTO_TCP, TCP_KEEPCNT),
            60);
  const int unacknowledged_ms = Option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT);
  EXPECT_GT(unacknowledged_ms, 0);
  EXPECT_LE(unacknowledged_ms, 60'000);
  ::close(fd);
}

}  // namespace
}  // namespace tollgate::http
