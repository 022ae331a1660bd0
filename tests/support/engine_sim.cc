#include "tests/support/engine_sim.h"

#include <condition_variable>
#include <ctime>
#include <future>
#include <optional>
#include <thread>

#include "tests/support/port.h"
#include "tests/support/sim_service.h"

namespace tollgate::test {

struct EngineSim::Impl {
  explicit Impl(EngineSimOptions given) : options(given), service(given), loop(&service) {
    service.Attach(&loop);
    port = options.port;
    // A port that stays free while the engine is stopped and started again.
    if (port == 0) port = own_port.emplace().number();
  }
  // Runs the task on the loop's thread and waits for it; directly when the loop is not running.
  void OnLoop(std::function<void()> task) {
    if (!thread.joinable()) return task();
    std::promise<void> done;
    loop.Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  EngineSimOptions options;
  SimService service;
  SimLoop loop;
  std::thread thread;
  std::optional<TestPort> own_port;
  int port = 0;
};

const std::string& SimRequest::header(const std::string& lower_name) const {
  static const std::string kNone;
  for (const auto& header : headers) {
    if (header.first == lower_name) return header.second;
  }
  return kNone;
}

EngineSim::EngineSim(EngineSimOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
EngineSim::~EngineSim() { Stop(); }

bool EngineSim::Start(std::string* error) {
  if (!impl_->loop.Listen(impl_->options.host, impl_->port, error)) return false;
  impl_->port = impl_->loop.port();
  impl_->thread = std::thread([this] { impl_->loop.Run(); });
  return true;
}

void EngineSim::Stop() {
  if (!impl_->thread.joinable()) return;
  impl_->loop.SetPaused(false);
  impl_->loop.RequestStop();
  impl_->thread.join();
}

int EngineSim::port() const { return impl_->port; }
std::string EngineSim::base_url() const {
  return "http://" + impl_->options.host + ":" + std::to_string(impl_->port);
}

std::vector<SimRequest> EngineSim::requests() const { return impl_->service.Requests(); }
SimTotals EngineSim::totals() const { return impl_->service.Totals(); }
void EngineSim::ForgetRequests() { impl_->service.Forget(); }
void EngineSim::SetDefaultScript(const std::string& json) { impl_->service.SetDefaultScript(json); }
void EngineSim::SetHealthy(bool healthy) { impl_->service.SetHealthy(healthy); }
void EngineSim::SetPaused(bool paused) { impl_->loop.SetPaused(paused); }

void EngineSim::SetListening(bool listening) {
  impl_->OnLoop([this, listening] {
    if (listening) {
      impl_->loop.ListenAgain(nullptr);
    } else {
      impl_->loop.StopListening();
      impl_->loop.CloseAll();
    }
  });
}

void EngineSim::SleepMs(int64_t ms) {
  const timespec wait{ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&wait, nullptr);
}

}  // namespace tollgate::test
