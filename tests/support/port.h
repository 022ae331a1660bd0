// Reserves a TCP port of the loopback interface for the lifetime of the object: for servers that
// are stopped and started again on the same port, and for servers that cannot choose one
// themselves. Other tests of this machine do not take it, and it lies below the ports that the
// kernel assigns to connections and to servers that listen on port 0, which could be in use when a
// server comes back.
#pragma once

#include <string>

namespace tollgate::test {

class TestPort {
 public:
  TestPort();  // aborts the process if no port is free
  ~TestPort();
  TestPort(TestPort&& other) noexcept;
  TestPort& operator=(TestPort&& other) noexcept;

  int number() const { return number_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(number_); }

 private:
  int number_ = 0;
  int reservation_ = -1;
};

}  // namespace tollgate::test
