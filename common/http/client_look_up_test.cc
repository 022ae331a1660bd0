#include "common/runtime/host_resolver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

#include "common/http/client.h"
#include "common/http/testing/server_fixture.h"
#include "common/runtime/testing/run_coro.h"

namespace tollgate::http {
namespace {

using testing::Eventually;
using testing::TestServer;
using tollgate::testing::RunOn;
using tollgate::testing::RunTask;
using Kind = ClientError::Kind;

// A name server: names that start with "hung" get no answer before Release; all others resolve to
// this host.
class NameServer {
 public:
  std::shared_ptr<HostResolver> MakeResolver() const {
    return std::make_shared<HostResolver>([shared = shared_](const std::string& host) {
      std::unique_lock lock(shared->mutex);
      ++shared->asked;
      shared->changed.notify_all();
      if (host.starts_with("hung")) {
        shared->changed.wait(lock, [&] { return shared->released; });
      }
      ++shared->answered;
      shared->changed.notify_all();
      return HostResolver::Answer{{}, {asio::ip::address_v4::loopback()}};
    });
  }
  ~NameServer() {
    Release();
    WaitForAnswers(asked());
  }
  void Release() {
    std::lock_guard lock(shared_->mutex);
    shared_->released = true;
    shared_->changed.notify_all();
  }
  int asked() const {
    std::lock_guard lock(shared_->mutex);
    return shared_->asked;
  }
  void WaitUntilAsked(int times) const {
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait(lock, [&] { return shared_->asked >= times; });
  }
  void WaitForAnswers(int times) const {
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait(lock, [&] { return shared_->answered >= times; });
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    int asked = 0;
    int answered = 0;
    bool released = false;
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

// Returns the status, or minus the kind of the error (not positive).
Task<int> StatusOf(Client& client, std::string host, uint16_t port) {
  ClientRequest request;
  request.origin = {std::move(host), port};
  request.target = "/stream";
  auto response = co_await client.Fetch(std::move(request));
  co_return response.ok() ? response->head.status : -static_cast<int>(response.error().kind);
}

ClientOptions With(std::shared_ptr<HostResolver> resolver, int64_t connect_timeout_ms = 60'000) {
  ClientOptions options;
  options.resolver = std::move(resolver);
  options.connect_timeout_ms = connect_timeout_ms;
  return options;
}

TEST(ClientLookUp, ALookUpThatHangsEndsAtTheConnectTimeout) {
  NameServer names;
  auto resolver = names.MakeResolver();
  std::string message;
  // On a busy machine a look-up may be dropped before a thread begins it, so it is repeated.
  while (names.asked() == 0) {
    // This returns while the look-up still hangs.
    message = RunTask([&](Loop& loop) -> Task<std::string> {
      Client client(loop, With(resolver, 50));
      ClientRequest request;
      request.origin = {"hung.example", 80};
      auto response = co_await client.Fetch(std::move(request));
      EXPECT_FALSE(response.ok());
      EXPECT_EQ(response.error().kind, Kind::kConnect);
      co_return response.error().message;
    });
  }
  EXPECT_EQ(message, boost::system::error_code(asio::error::timed_out).message());
  EXPECT_EQ(names.asked(), 1);
}

TEST(ClientLookUp, AbortEndsTheWaitForALookUpThatHangs) {
  NameServer names;
  auto resolver = names.MakeResolver();
  const Kind kind = RunTask([&](Loop& loop) -> Task<Kind> {
    Client client(loop, With(resolver));
    ClientCall call(client);
    loop.RunAfter(20, [&] { call.Abort(); });
    ClientRequest request;
    request.origin = {"hung.example", 80};
    auto head = co_await call.Send(std::move(request));
    co_return head.ok() ? Kind::kBroken : head.error().kind;
  });
  EXPECT_EQ(kind, Kind::kAborted);
}

TEST(ClientLookUp, OtherNamesAreFoundWhileOneHangs) {
  TestServer server;
  NameServer names;
  auto resolver = names.MakeResolver();
  RunTask([&](Loop& loop) -> Task<int> {
    Client client(loop, With(resolver));
    ClientCall hung(client);
    int ended = 0;
    auto wait = [](ClientCall& call, int* count) -> Task<void> {
      ClientRequest request;
      request.origin = {"hung.example", 80};
      auto head = co_await call.Send(std::move(request));
      EXPECT_FALSE(head.ok());
      ++*count;
    };
    loop.Spawn(wait(hung, &ended));
    EXPECT_EQ(co_await StatusOf(client, "engine.example", server.port()), 200);
    EXPECT_EQ(ended, 0);
    hung.Abort();
    while (ended == 0) co_await loop.Sleep(1);
    co_return 0;
  });
}

TEST(ClientLookUp, ShutdownDoesNotWaitForALookUpAndItsLateAnswerIsDropped) {
  NameServer names;
  auto resolver = names.MakeResolver();
  {
    LoopPool pool(1);
    pool.Start();
    auto wait = [](Loop& loop, std::shared_ptr<HostResolver> resolver) -> Task<void> {
      Client client(loop, With(std::move(resolver)));
      co_await StatusOf(client, "hung.example", 80);
      ADD_FAILURE() << "the late answer was used";
    };
    pool.loop(0).Post([&] { pool.loop(0).Spawn(wait(pool.loop(0), resolver)); });
    names.WaitUntilAsked(1);
    pool.Stop();
    resolver = nullptr;
  }
  names.Release();
  names.WaitForAnswers(1);
}

TEST(ClientLookUp, CallersOfOneNameShareALookUp) {
  TestServer server;
  NameServer names;
  auto resolver = names.MakeResolver();
  std::atomic<int> started{0};
  std::atomic<int> good{0};
  auto fetch = [&](Loop& loop) -> Task<void> {
    Client client(loop, With(resolver));
    ++started;
    if (co_await StatusOf(client, "hung.example", server.port()) == 200) ++good;
  };
  LoopPool pool(2);
  pool.Start();
  for (int i = 0; i < 20; ++i) {
    Loop& loop = pool.loop(i % 2);
    loop.Post([&] { loop.Spawn(fetch(loop)); });
  }
  ASSERT_TRUE(Eventually([&] { return started == 20; }));
  for (int i = 0; i < 2; ++i) pool.loop(i).RunAndWait([] {});
  names.Release();
  EXPECT_TRUE(Eventually([&] { return good == 20; }));
  EXPECT_EQ(names.asked(), 1);
}

TEST(ClientLookUp, WhenAllThreadsHangFurtherNamesWaitUntilOneIsFree) {
  TestServer server;
  NameServer names;
  auto resolver = names.MakeResolver();
  RunTask([&](Loop& loop) -> Task<int> {
    Client brief(loop, With(resolver, 50));
    const int threads = static_cast<int>(HostResolver::kMaxThreads);
    for (int i = 0; i < threads; ++i) {
      // On a busy machine a look-up may be dropped before a thread begins it, so it is repeated.
      while (names.asked() == i) {
        EXPECT_LE(co_await StatusOf(brief, "hung" + std::to_string(i), 80), 0);
      }
    }
    EXPECT_LE(co_await StatusOf(brief, "engine.example", server.port()), 0);
    EXPECT_EQ(names.asked(), threads);
    names.Release();
    Client patient(loop, With(resolver));
    EXPECT_EQ(co_await StatusOf(patient, "engine.example", server.port()), 200);
    co_return 0;
  });
}

TEST(ClientLookUp, TheFirstAddressThatAcceptsIsUsed) {
  TestServer server;  // listens on 127.0.0.1 only
  const auto with = [](std::vector<asio::ip::address> addresses) {
    return With(
        std::make_shared<HostResolver>([addresses = std::move(addresses)](const std::string&) {
          return HostResolver::Answer{{}, addresses};
        }));
  };
  const auto refused = asio::ip::make_address("127.0.0.2");
  const auto accepts = asio::ip::make_address("127.0.0.1");
  RunTask([&](Loop& loop) -> Task<int> {
    Client second(loop, with({refused, accepts}));
    EXPECT_EQ(co_await StatusOf(second, "engine.example", server.port()), 200);
    Client none(loop, with({refused, refused}));
    EXPECT_EQ(co_await StatusOf(none, "engine.example", server.port()),
              -static_cast<int>(Kind::kConnect));
    Client empty(loop, with({}));
    EXPECT_EQ(co_await StatusOf(empty, "engine.example", server.port()),
              -static_cast<int>(Kind::kConnect));
    co_return 0;
  });
}

TEST(ClientLookUp, AnAddressIsNotLookedUp) {
  TestServer server;
  NameServer names;
  auto resolver = names.MakeResolver();
  RunTask([&](Loop& loop) -> Task<int> {
    Client client(loop, With(resolver));
    EXPECT_EQ(co_await StatusOf(client, "127.0.0.1", server.port()), 200);
    co_return 0;
  });
  EXPECT_EQ(names.asked(), 0);
}

TEST(ClientLookUp, TheSystemKnowsThisHostAndReportsUnknownNames) {
  TestServer server;
  RunTask([&](Loop& loop) -> Task<int> {
    Client client(loop);
    EXPECT_EQ(co_await StatusOf(client, "localhost", server.port()), 200);
    HostLookUp unknown(loop, *HostResolver::Shared());
    // A label of 64 characters is invalid, so no server is asked.
    const HostResolver::Answer answer = co_await unknown.Run(std::string(64, 'a') + ".invalid");
    EXPECT_TRUE(answer.error);
    EXPECT_TRUE(answer.addresses.empty());
    co_return 0;
  });
}

}  // namespace
}  // namespace tollgate::http
