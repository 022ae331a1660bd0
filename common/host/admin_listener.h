// The HTTP listener for operators: /metrics, /healthz, /readyz and /version.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/error/error.h"
#include "common/runtime/loop.h"

namespace tollgate::http {
class Server;
}

namespace tollgate::host {

class AdminListener {
 public:
  // Name and readiness of each module. Called for every request of /readyz, from any thread.
  using ReadyReport = std::function<std::vector<std::pair<std::string, bool>>()>;

  AdminListener(LoopPool& loops, std::string process_name, ReadyReport ready);
  ~AdminListener();
  Result<void> Listen(const std::string& address);
  std::string address() const;
  void Stop();

 private:
  std::unique_ptr<http::Server> server_;
};

}  // namespace tollgate::host
