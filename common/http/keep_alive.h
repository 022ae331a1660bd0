// Finds peers that are gone without a word: a machine that lost its power or its network.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace tollgate::http {

// The kernel probes the idle connection, and ends it after about a minute without an answer, or
// without an acknowledgement of what was sent. An accepted socket inherits it from the one that listens.
inline void NoticeLostPeers(int fd) {
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const int idle_s = 30;
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  const int interval_s = 10;
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  const int count = 3;
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  // The probes wait while sent bytes are not acknowledged, as those of a request to an engine that
  // has just lost its power.
  const unsigned int unacknowledged_ms = 60'000;
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
}

}  // namespace tollgate::http
