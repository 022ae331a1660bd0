// Finds peers that are gone without a word: a machine that lost its power or its network.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace tollgate::http {

// The kernel probes the idle connection, and ends it after about a minute without an answer, or
// without an acknowledgement of what was sent: the probes wait while bytes are not acknowledged, as
// those of a request to an engine that has just lost its power. An accepted socket inherits it from
// the one that listens.
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
