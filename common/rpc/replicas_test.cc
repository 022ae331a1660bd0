#include "common/rpc/replicas.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <set>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/rpc/replica_caller.h"
#include "common/rpc/resolver.h"
#include "common/rpc/testing/auth_server.h"

namespace tollgate::rpc {
namespace {

using testing::AuthServer;
using testing::AuthService;
using testing::VerifyKeyRequest;
using testing::VerifyKeyResponse;
using tollgate::testing::RunOn;

struct VerifyKeyMethod : UnaryMethod<AuthService, VerifyKeyRequest, VerifyKeyResponse> {
  static constexpr UnaryPointer kUnary = &Async::VerifyKey;
};

// Accepts connections but never answers, as the kernel does for a stopped process.
class Hung {
 public:
  Hung() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 64), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Hung() { ::close(socket_); }
  std::string target() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int socket_;
  int port_ = 0;
};

// Enough for a busy machine. replica_health_test.cc tests the limit of a second with a manual
// clock.
constexpr int64_t kPatienceMs = 60'000;

class ReplicasTest : public ::testing::Test {
 protected:
  ReplicasTest() {
    server_loops_.Start();
    loops_.Start();
  }
  ~ReplicasTest() override {
    loop().RunAndWait([this] { replicas_.reset(); });
  }
  Loop& loop() { return loops_.loop(0); }
  void Use(const std::string& target) {
    replicas_ = Replicas::Make(
        loop(), "auth", target,
        [this](const std::string& address) { return channels_.Channel(address, "auth"); }, nullptr);
  }
  static Task<Result<VerifyKeyResponse>> Verify(Loop& loop, std::shared_ptr<Replicas> replicas,
                                                Moves moves, int64_t timeout_ms) {
    VerifyKeyRequest request;
    request.set_key_digest("worker");
    return ReplicaCaller<VerifyKeyMethod>(loop, std::move(replicas))
        .Call(std::move(request), timeout_ms, nullptr, moves);
  }
  Result<VerifyKeyResponse> Call(Moves moves = Moves::kYes, int64_t timeout_ms = kPatienceMs) {
    return RunOn(loop(), [&](Loop& loop) { return Verify(loop, replicas_, moves, timeout_ms); });
  }
  // Fails the test if a call fails.
  void MakeCalls(int calls) {
    for (int i = 0; i < calls; ++i) {
      const auto result = Call();
      EXPECT_TRUE(result.ok()) << "call " << i << ": " << result.error().ToString();
    }
  }
  bool InUse(const std::string& address) {
    bool in_use = false;
    loop().RunAndWait([&] {
      for (const auto& replica : replicas_->All()) {
        in_use |= replica->address() == address && replicas_->InUse(*replica);
      }
    });
    return in_use;
  }
  void WaitUntilUnused(const std::string& address) {
    const int64_t end_us = SystemClock::Get().MonotonicUs() + kPatienceMs * 1000;
    while (InUse(address) && SystemClock::Get().MonotonicUs() < end_us) std::this_thread::yield();
    EXPECT_FALSE(InUse(address)) << address;
  }
  // Returns the microseconds until a call succeeds.
  int64_t TimeUntilServed() {
    const int64_t begun_us = SystemClock::Get().MonotonicUs();
    while (!Call().ok()) std::this_thread::yield();
    return SystemClock::Get().MonotonicUs() - begun_us;
  }

  LoopPool server_loops_{1};
  LoopPool loops_{1};
  ChannelSource channels_;
  std::shared_ptr<Replicas> replicas_;
};

TEST_F(ReplicasTest, NoCallFailsWhenOneOfTwoReplicasIsGone) {
  AuthServer first(server_loops_);
  std::optional<AuthServer> second(std::in_place, server_loops_);
  Use(first.target() + "," + second->target());
  MakeCalls(20);
  second.reset();
  MakeCalls(100);
}

// Moves long before the call's own timeout, at which it would fail.
TEST_F(ReplicasTest, ACallOnAReplicaThatHangsGoesOnElsewhere) {
  AuthServer first(server_loops_);
  Hung second;
  Use(second.target() + "," + first.target());
  MakeCalls(20);
  WaitUntilUnused(second.target());
  MakeCalls(50);
  EXPECT_FALSE(InUse(second.target())) << "for good";
}

TEST_F(ReplicasTest, ACallThatMustNotMoveStaysWithItsReplica) {
  AuthServer first(server_loops_);
  Hung second;
  Use(second.target() + "," + first.target());
  const auto stays = Call(Moves::kNo, 1'200);
  ASSERT_FALSE(stays.ok());
  EXPECT_EQ(stays.error().id, ErrorId::kServiceUnavailable);
  WaitUntilUnused(second.target());
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Call(Moves::kNo).ok()) << "later ones go elsewhere";
}

// A busy machine delays some attempts, so one fast attempt of ten is enough.
TEST_F(ReplicasTest, WhenAllAreGoneCallsFailAndTheFirstThatReturnsIsUsedAtOnce) {
  bool soon = false;
  for (int tries = 0; tries < 10 && !soon; ++tries) {
    std::optional<AuthServer> first(std::in_place, server_loops_);
    std::optional<AuthServer> second(std::in_place, server_loops_);
    const std::string target = first->target();
    loop().RunAndWait([&] { Use(target + "," + second->target()); });
    MakeCalls(10);
    first.reset();
    second.reset();
    for (int i = 0; i < 20; ++i) {
      const auto result = Call(Moves::kYes, 200);
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.error().id, ErrorId::kServiceUnavailable);
    }
    AuthServer again(server_loops_, target);
    soon = TimeUntilServed() < 1'500'000;
  }
  EXPECT_TRUE(soon) << "no wait for the end of its ejection";
}

// The order does not depend on the order of the client's targets.
TEST_F(ReplicasTest, EveryClientHasTheSameOrderOfReplicas) {
  // Runs in one turn of the loop. Later the loop would learn that these addresses refuse
  // connections.
  const auto order = [this](const std::string& targets) {
    std::vector<std::string> order;
    loop().RunAndWait([&] {
      Use(targets);
      for (size_t i = 0; i < 5; ++i) order.push_back(replicas_->PickInOrder(i)->address());
    });
    return order;
  };
  const std::vector<std::string> one = order("127.0.0.1:1,127.0.0.1:2,127.0.0.1:3,127.0.0.1:4");
  EXPECT_EQ(std::set<std::string>(one.begin(), one.end()).size(), 4u);
  EXPECT_EQ(one[4], one[0]) << "in turn";
  EXPECT_EQ(order("127.0.0.1:4,127.0.0.1:2,127.0.0.1:1,127.0.0.1:3"), one);
}

TEST_F(ReplicasTest, AReplicaThatIsLostLeavesTheOrderAndComesBack) {
  AuthServer first(server_loops_);
  std::optional<AuthServer> second(std::in_place, server_loops_);
  const std::string lost = second->target();
  Use(first.target() + "," + lost);
  const auto places = [&] {
    int places = 0;
    loop().RunAndWait([&] {
      for (size_t i = 0; i < 2; ++i) places += replicas_->PickInOrder(i)->address() == lost ? 1 : 0;
    });
    return places;
  };
  const auto wait_for = [&](int expected) {
    const int64_t end_us = SystemClock::Get().MonotonicUs() + kPatienceMs * 1000;
    while (places() != expected && SystemClock::Get().MonotonicUs() < end_us) MakeCalls(1);
    EXPECT_EQ(places(), expected);
  };
  MakeCalls(10);
  wait_for(1);
  second.reset();
  wait_for(0);
  second.emplace(server_loops_, lost);
  wait_for(1);
}

TEST_F(ReplicasTest, CallsThatAreSentAgainAreBounded) {
  Use("127.0.0.1:1,127.0.0.1:2");
  int sent_again = 0;
  loop().RunAndWait([&] {
    for (int i = 0; i < 10'000; ++i) {
      replicas_->CountCall();
      sent_again += replicas_->TakeRetry() ? 1 : 0;
    }
  });
  EXPECT_LE(sent_again, 10'000 / 10 + 100);
  EXPECT_GE(sent_again, 10'000 / 10);
}

TEST_F(ReplicasTest, TheOnlyReplicaIsUsedWhateverItsHealth) {
  bool soon = false;
  for (int tries = 0; tries < 10 && !soon; ++tries) {
    std::optional<AuthServer> only(std::in_place, server_loops_);
    const std::string target = only->target();
    loop().RunAndWait([&] { Use(target); });
    MakeCalls(5);
    only.reset();
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(Call(Moves::kYes, 200).ok());
    AuthServer again(server_loops_, target);
    soon = TimeUntilServed() < 1'500'000;
  }
  EXPECT_TRUE(soon);
}

TEST_F(ReplicasTest, ANameIsReplacedByItsAddresses) {
  AuthServer server(server_loops_);
  const std::string port = std::to_string(server.port);
  replicas_ = Replicas::Make(
      loop(), "auth", "localhost:" + port + "," + server.target(),
      [this](const std::string& address) { return channels_.Channel(address, "auth"); },
      std::make_shared<Resolver>());
  const auto size = [this] {
    size_t size = 0;
    loop().RunAndWait([&] { size = replicas_->size(); });
    return size;
  };
  EXPECT_TRUE(Call().ok());
  const int64_t end_us = SystemClock::Get().MonotonicUs() + kPatienceMs * 1000;
  while (size() != 1 && SystemClock::Get().MonotonicUs() < end_us) std::this_thread::yield();
  EXPECT_EQ(size(), 1u) << "both are the same address";
  EXPECT_TRUE(Call().ok());
}

TEST(Resolver, FindsTheAddressesOfANameInTheBackground) {
  Resolver resolver;
  std::vector<std::string> found;
  const int64_t end_us = SystemClock::Get().MonotonicUs() + kPatienceMs * 1000;
  while (found.empty() && SystemClock::Get().MonotonicUs() < end_us) {
    found = resolver.AddressesOf("localhost:7001");
    std::this_thread::yield();
  }
  EXPECT_EQ(found, std::vector<std::string>{"127.0.0.1:7001"});
}

TEST(Resolver, FindsAddressesOfIpv6WhereThereIsNoOther) {
  const auto look_up = [](const std::string& part) {
    auto found = std::make_shared<std::promise<std::vector<std::string>>>();
    SystemLookUp()(part, [found](auto addresses) { found->set_value(std::move(addresses)); });
    return found->get_future().get();
  };
  EXPECT_EQ(look_up("localhost:7001"), std::vector<std::string>{"127.0.0.1:7001"});
  EXPECT_TRUE(look_up("localhost").empty()) << "there is no port";
  const std::vector<std::string> found = look_up("ip6-loopback:7001");
  if (found.empty()) GTEST_SKIP() << "this machine does not know ip6-loopback";
  EXPECT_EQ(found, std::vector<std::string>{"[::1]:7001"});
}

TEST(Resolver, OnlyNamesAreLookedUp) {
  EXPECT_TRUE(IsName("auth:7001"));
  EXPECT_TRUE(IsName("auth.example.test:7001"));
  for (const char* other : {"127.0.0.1:7001", "[::1]:7001", "unix:/run/auth.sock",
                            "inproc:", "inproc-admin:", "", "auth", ":7001", "dns:///auth:7001"}) {
    EXPECT_FALSE(IsName(other)) << other;
  }
  EXPECT_EQ(SplitTargets(" a:1, b:2 ,,c:3"), (std::vector<std::string>{"a:1", "b:2", "c:3"}));
}

}  // namespace
}  // namespace tollgate::rpc
