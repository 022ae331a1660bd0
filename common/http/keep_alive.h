// Detects peers that vanished without closing: a machine that lost power or network.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace tollgate::http {

// The kernel probes the idle connection and ends it after about a minute without an answer. The
// same limit applies to unacknowledged data, which suspends the probes, for example a request to an
// engine that has just lost power. Accepted sockets inherit the options from the listening socket.
inline void NoticeLostPeers(int fd) {
  const auto set = [fd](int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

}  // namespace tollgate::http
