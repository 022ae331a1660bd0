// For tests: a server on a free port with handlers that echo, stream and wait.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "common/base/testing/certificate.h"
#include "common/http/server.h"
#include "common/http/testing/raw_client.h"
#include "common/http/tls.h"
#include "common/runtime/loop.h"
#include "common/runtime/notify.h"

namespace tollgate::http::testing {

// A certificate authority and its certificates, in files that exist until the process ends.
class TestPki {
 public:
  TestPki() : folder_(::testing::TempDir() + "/pki_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
    authority.WriteCertificate(authority_file());
    Issue("server", "DNS:localhost,IP:127.0.0.1");
  }
  ~TestPki() { std::filesystem::remove_all(folder_); }
  static TestPki& Get() {
    static TestPki pki;
    return pki;
  }

  void Issue(const std::string& name, const std::string& alternative_name) {
    TestCertificate(name, alternative_name, &authority).Write(certificate(name), key(name));
  }
  std::string authority_file() const { return folder_ + "/authority.pem"; }
  std::string certificate(const std::string& name = "server") const {
    return folder_ + "/" + name + ".pem";
  }
  std::string key(const std::string& name = "server") const {
    return folder_ + "/" + name + ".key";
  }

  using TestCertificate = tollgate::testing::TestCertificate;
  TestCertificate authority{"authority"};

 private:
  const std::string folder_;
};

using Transport = RawClient::Transport;

class TestServer {
 public:
  explicit TestServer(ServerOptions options = {}, int loops = 2)
      : TestServer(Transport::kPlain, std::move(options), loops) {}
  explicit TestServer(Transport transport, ServerOptions options = {}, int loops = 2)
      : transport_(transport), pool_(loops) {
    if (transport == Transport::kTls && options.tls == nullptr) {
      TestPki& pki = TestPki::Get();
      options.tls = TlsServerContext::Load({{pki.certificate(), pki.key()}}).value();
    }
    server_ = std::make_unique<Server>(pool_, std::move(options),
                                       [this](Exchange& exchange) { return Handle(exchange); });
    pool_.Start();
    auto listening = server_->Listen("127.0.0.1:0");
    if (!listening.ok()) std::abort();
  }
  ~TestServer() {
    OpenGate();
    server_->Stop();
  }

  // Opens the gate: requests to /gate are answered, and its streams continue.
  void OpenGate() { gate_open_ = true; }
  uint16_t port() const { return server_->port(); }
  Transport transport() const { return transport_; }
  Server& server() { return *server_; }
  LoopPool& pool() { return pool_; }
  int handled() const { return handled_; }
  int disconnects() const { return disconnects_; }
  // The chunks of /endless accepted by the socket.
  int chunks_taken() const { return chunks_taken_; }

 private:
  Task<void> Handle(Exchange& exchange) {
    ++handled_;
    const std::string path = exchange.request().path;
    if (path == "/echo") {
      co_await exchange.Send(
          {200, {{"content-type", "text/plain"}}, std::move(exchange.mutable_request().body)});
    } else if (path == "/authorization" || path == "/host") {
      const std::string name = path.substr(1);
      co_await exchange.Send({200, {}, "[" + std::string(exchange.request().header(name)) + "]"});
    } else if (path == "/big") {
      co_await exchange.Send({200, {}, std::string(8 << 20, 'b')});
    } else if (path == "/stream") {
      co_await exchange.BeginStream(200, {{"content-type", "text/event-stream"}});
      co_await exchange.Write("data: 1\n\n");
      co_await exchange.loop().Sleep(10);
      co_await exchange.Write("data: 2\n\n");
      co_await exchange.EndStream();
    } else if (path == "/trailers") {
      co_await exchange.BeginStream(200, {{"trailer", "x-after"}});
      co_await exchange.Write("body");
      exchange.SetTrailers({{"x-after", "a\r\nx-injected: b"}, {"x-other", "c"}});
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
    } else if (path == "/gate") {
      while (!gate_open_) co_await exchange.loop().Sleep(1);
      co_await exchange.Send({200, {}, "through the gate"});
    } else if (path == "/gate-streaming") {
      co_await exchange.BeginStream(200, {{"content-type", "text/event-stream"}});
      co_await exchange.Write("data: 1\n\n");
      while (!gate_open_) co_await exchange.loop().Sleep(1);
      co_await exchange.Write("data: 2\n\n");
      co_await exchange.EndStream();
    } else if (path == "/last-words") {
      co_await exchange.BeginStream(200, {{"content-type", "text/event-stream"}});
      co_await exchange.Write("data: 1\n\n");
      Event over(exchange.loop());
      exchange.OnDrainOver([&over] { over.Set(); });
      co_await over.Wait();
      co_await exchange.Write("data: over\n\n");
      co_await exchange.EndStream();
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

  // Sends nothing and waits for the client to disconnect.
  Task<void> Wait(Exchange& exchange, bool streaming) {
    Event disconnected(exchange.loop());
    exchange.OnDisconnect([this, &disconnected] {
      ++disconnects_;
      disconnected.Set();
    });
    if (streaming) {
      co_await exchange.BeginStream(200, {{"content-type", "text/event-stream"}});
      co_await exchange.Write("data: first\n\n");
    }
    co_await disconnected.WaitFor(120'000);
  }

  const Transport transport_;
  LoopPool pool_;
  std::unique_ptr<Server> server_;
  std::atomic<bool> gate_open_{false};
  std::atomic<int> handled_{0};
  std::atomic<int> disconnects_{0};
  std::atomic<int> chunks_taken_{0};
};

// A connection to a TestServer over its transport.
class TestClient : public RawClient {
 public:
  explicit TestClient(const TestServer& server, int receive_buffer = 0,
                      const char* source = "127.0.0.1")
      : RawClient(server.port(), receive_buffer, server.transport(), source) {}
};

// For tests that run in plain text and over TLS.
class TransportTest : public ::testing::TestWithParam<Transport> {};
inline const auto kTransports = ::testing::Values(Transport::kPlain, Transport::kTls);
inline std::string TransportName(const ::testing::TestParamInfo<Transport>& info) {
  return info.param == Transport::kTls ? "Tls" : "Plain";
}

// Waits until another thread makes the condition true.
template <typename Condition>
bool Eventually(Condition condition, int timeout_ms = 60'000) {
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace tollgate::http::testing
