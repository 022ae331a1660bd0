// For tests: a server on a free port with handlers that echo, stream and wait.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "common/http/server.h"
#include "common/runtime/loop.h"
#include "common/runtime/notify.h"

namespace tollgate::http::testing {

class TestServer {
 public:
  explicit TestServer(ServerOptions options = {}, int loops = 2) : pool_(loops) {
    server_ = std::make_unique<Server>(pool_, std::move(options),
                                       [this](Exchange& exchange) { return Handle(exchange); });
    pool_.Start();
    auto listening = server_->Listen("127.0.0.1:0");
    if (!listening.ok()) std::abort();
  }
  ~TestServer() { server_->Stop(); }

  uint16_t port() const { return server_->port(); }
  Server& server() { return *server_; }
  LoopPool& pool() { return pool_; }
  int handled() const { return handled_; }
  int disconnects() const { return disconnects_; }
  // Of /endless: chunks that the socket has taken.
  int chunks_taken() const { return chunks_taken_; }

 private:
  Task<void> Handle(Exchange& exchange) {
    ++handled_;
    const std::string path = exchange.request().path;
    if (path == "/echo") {
      co_await exchange.Send(
          {200, {{"content-type", "text/plain"}}, std::move(exchange.mutable_request().body)});
    } else if (path == "/authorization") {
      co_await exchange.Send(
          {200, {}, "[" + std::string(exchange.request().header("authorization")) + "]"});
    } else if (path == "/big") {
      co_await exchange.Send({200, {}, std::string(8 << 20, 'b')});
    } else if (path == "/stream") {
      co_await exchange.BeginStream(200, {{"content-type", "text/event-stream"}});
      co_await exchange.Write("data: 1\n\n");
      co_await exchange.loop().Sleep(10);
      co_await exchange.Write("data: 2\n\n");
      co_await exchange.EndStream();
    } else if (path == "/cut") {
      co_await exchange.BeginStream(200, {{"content-type", "text/event-stream"}});
      co_await exchange.Write("data: 1\n\n");
      exchange.Abort();
    } else if (path == "/wait" || path == "/wait-streaming") {
      co_await Wait(exchange, path == "/wait-streaming");
    } else if (path == "/slow") {
      co_await exchange.loop().Sleep(300);
      co_await exchange.Send({200, {}, "slow"});
    } else if (path == "/endless") {
      co_await exchange.BeginStream(200, {{"content-type", "text/event-stream"}});
      while (co_await exchange.Write(std::string(16 * 1024, 'e'))) ++chunks_taken_;
      ++disconnects_;
    } else if (path == "/nothing") {
      co_return;
    } else if (path == "/throw") {
      throw std::runtime_error("thrown by a test");
    } else {
      co_await exchange.Send({404, {}, "no such path"});
    }
  }

  // Until the client leaves: no byte flows meanwhile.
  Task<void> Wait(Exchange& exchange, bool streaming) {
    Event left(exchange.loop());
    exchange.OnDisconnect([this, &left] {
      ++disconnects_;
      left.Set();
    });
    if (streaming) {
      co_await exchange.BeginStream(200, {{"content-type", "text/event-stream"}});
      co_await exchange.Write("data: first\n\n");
    }
    co_await left.WaitFor(20'000);
  }

  LoopPool pool_;
  std::unique_ptr<Server> server_;
  std::atomic<int> handled_{0};
  std::atomic<int> disconnects_{0};
  std::atomic<int> chunks_taken_{0};
};

// Waits for a condition that another thread brings about.
template <typename Condition>
bool Eventually(Condition condition, int timeout_ms = 5000) {
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace tollgate::http::testing
