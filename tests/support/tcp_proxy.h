// A TCP proxy that tests can stop in one direction or cut: forwards to one address, on a port
// chosen by the kernel.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace tollgate::test {

class TcpProxy {
 public:
  TcpProxy() = default;
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  // target: "127.0.0.1:PORT". Returns its own address, "" when it cannot start.
  std::string Start(const std::string& target);
  // Stops forwarding from the target to its clients; bytes of clients are still forwarded.
  void HoldAnswers();
  // Closes every connection and refuses new ones.
  void Cut();

 private:
  struct Pair {
    int client = -1;
    int target = -1;
  };
  void Run();
  void Accept();
  // Returns false when the connection has ended.
  static bool Forward(int from, int to);
  void Wake();

  int target_port_ = 0;
  int listener_ = -1;
  int wake_ = -1;
  std::atomic<bool> hold_answers_ = false;
  std::atomic<bool> cut_ = false;
  std::vector<Pair> pairs_;  // used by the thread only
  std::thread thread_;
};

}  // namespace tollgate::test
