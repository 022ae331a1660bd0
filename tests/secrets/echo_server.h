// An HTTP server that answers each request with an error that contains the request, head and body:
// the worst response of a peer.
#pragma once

#include <atomic>
#include <string>
#include <thread>

namespace tollgate::test {

class EchoServer {
 public:
  explicit EchoServer(int status);
  ~EchoServer();
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string url() const { return "http://" + address(); }
  int requests() const { return requests_; }

 private:
  void Serve();

  const int status_;
  int socket_ = -1;
  int port_ = 0;
  std::atomic<bool> stopped_{false};
  std::atomic<int> requests_{0};
  std::thread thread_;
};

}  // namespace tollgate::test
