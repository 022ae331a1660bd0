#include "common/rpc/call_stream.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <string>
#include <thread>
#include <vector>

#include "common/rpc/call_stream_server.h"
#include "common/rpc/channel.h"
#include "common/rpc/replica_caller.h"
#include "common/rpc/server.h"
#include "common/runtime/testing/run_coro.h"
#include "tollgate/ratelimit/v1/ratelimit.grpc.pb.h"

namespace tollgate::rpc {
namespace {

using ratelimit::v1::AcquireCallsRequest;
using ratelimit::v1::AcquireCallsResponse;
using ratelimit::v1::AcquireRequest;
using ratelimit::v1::AcquireResponse;
using ratelimit::v1::RateLimitService;
using tollgate::testing::RunOn;
using Status = grpc::Status;

struct AcquireMethod : StreamedMethod<RateLimitService, AcquireRequest, AcquireResponse,
                                      AcquireCallsRequest, AcquireCallsResponse> {
  static constexpr UnaryPointer kUnary = &Async::Acquire;
  static constexpr StreamPointer kStream = &Async::AcquireCalls;
};

// Answers a call with its gateway id as the store id; "later…" when AnswerAll is called; "error"
// with a refusal.
class FakeLimiter : public RateLimitService::CallbackService {
 public:
  // knows_streams: false simulates a server of an earlier version.
  explicit FakeLimiter(bool knows_streams = true, int64_t max_age_ms = kMaxConnectionAgeMs)
      : knows_streams_(knows_streams),
        streams_([this](const auto& request, auto& response,
                        auto done) { Serve(request, response, std::move(done)); },
                 max_age_ms) {
    grpc::ServerBuilder builder;
    ConfigureServer(builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
  }
  ~FakeLimiter() override {
    AnswerAll();
    Stop();
  }
  void Stop() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  std::string target() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::ServerUnaryReactor* Acquire(grpc::CallbackServerContext* context,
                                    const AcquireRequest* request,
                                    AcquireResponse* response) override {
    ++unary;
    auto* reactor = context->DefaultReactor();
    Serve(*request, *response, [reactor](const Status& status) { reactor->Finish(status); });
    return reactor;
  }
  grpc::ServerBidiReactor<AcquireCallsRequest, AcquireCallsResponse>* AcquireCalls(
      grpc::CallbackServerContext* context) override {
    if (!knows_streams_) return RateLimitService::CallbackService::AcquireCalls(context);
    ++streams;
    return streams_.Open();
  }
  void CloseStreams() { streams_.Close(); }

  // Waits until this many calls wait for AnswerAll.
  void AwaitWaiting(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.size() >= count; });
  }
  size_t waiting() {
    std::lock_guard lock(mutex_);
    return waiting_.size();
  }
  // Answers waiting calls, and from now on all others at once.
  void AnswerAll() {
    std::vector<std::function<void()>> waiting;
    {
      std::lock_guard lock(mutex_);
      open_ = true;
      waiting.swap(waiting_);
    }
    for (const auto& answer : waiting) answer();
  }

  std::atomic<int> unary{0};
  std::atomic<int> streams{0};

 private:
  void Serve(const AcquireRequest& request, AcquireResponse& response,
             std::function<void(Status)> done) {
    const std::string what = request.gateway_id();
    if (what == "error") {
      return done(ToStatus(Error{.id = ErrorId::kTokenLimited, .retry_after_ms = 1234}));
    }
    auto answer = [&response, what, done = std::move(done)] {
      response.set_store_id(what);
      done(Status::OK);
    };
    std::unique_lock lock(mutex_);
    if (what.starts_with("later") && !open_) {
      waiting_.push_back(std::move(answer));
      return changed_.notify_all();
    }
    lock.unlock();
    answer();
  }

  const bool knows_streams_;
  CallStreams<AcquireCallsRequest, AcquireCallsResponse> streams_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> waiting_;
  bool open_ = false;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class CallStreamTest : public ::testing::Test {
 protected:
  CallStreamTest() { loops_.Start(); }
  ~CallStreamTest() override {
    loop().RunAndWait([this] { replicas_.reset(); });
  }
  Loop& loop() { return loops_.loop(0); }
  void Use(const std::string& target) {
    replicas_ = Replicas::Make(
        loop(), "ratelimit", target,
        [this](const std::string& address) { return channels_.Channel(address, "ratelimit"); },
        nullptr);
  }
  static Task<Result<AcquireResponse>> Ask(Loop& loop, std::shared_ptr<Replicas> replicas,
                                           std::string what, int64_t timeout_ms) {
    AcquireRequest request;
    request.set_gateway_id(std::move(what));
    return ReplicaCaller<AcquireMethod>(loop, std::move(replicas))
        .Call(std::move(request), timeout_ms);
  }
  // Returns the store id of the answer, or the error's name.
  std::string Call(const std::string& what, int64_t timeout_ms = 60'000) {
    auto result = RunOn(loop(), [&](Loop& loop) { return Ask(loop, replicas_, what, timeout_ms); });
    return result.ok() ? result->store_id() : std::string(result.error().row().name);
  }
  // Starts a call; Await returns its answer.
  void Begin(const std::string& what) {
    ++begun_;
    loop().Post([this, what] { loop().Spawn(Run(*this, what)); });
  }
  static Task<void> Run(CallStreamTest& test, std::string what) {
    auto result = co_await Ask(test.loop(), test.replicas_, std::move(what), 60'000);
    std::lock_guard lock(test.mutex_);
    test.answers_.push_back(result.ok() ? result->store_id()
                                        : std::string(result.error().row().name));
    test.changed_.notify_all();
  }
  std::vector<std::string> Await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answers_.size() == begun_; });
    return answers_;
  }

  LoopPool loops_{1};
  ChannelSource channels_;
  std::shared_ptr<Replicas> replicas_;
  size_t begun_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> answers_;
};

TEST_F(CallStreamTest, CallsOfALoopShareAStreamAndAreAnsweredInAnyOrder) {
  FakeLimiter server;
  Use(server.target());
  Begin("later");
  server.AwaitWaiting(1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Call(std::to_string(i)), std::to_string(i));
  server.AnswerAll();
  EXPECT_EQ(Await(), std::vector<std::string>{"later"});
  EXPECT_EQ(server.streams, 1);
  EXPECT_EQ(server.unary, 0);
}

TEST_F(CallStreamTest, AnErrorOfOneCallKeepsItsRowOfTheCatalogAndHurtsNoOther) {
  FakeLimiter server;
  Use(server.target());
  EXPECT_EQ(Call("a"), "a");
  EXPECT_EQ(Call("error"), std::string(Error{.id = ErrorId::kTokenLimited}.row().name));
  EXPECT_EQ(Call("b"), "b");
  EXPECT_EQ(server.streams, 1);
}

// Two versions of a service run side by side in an upgrade.
TEST_F(CallStreamTest, AServerThatDoesNotKnowTheStreamIsAskedCallByCall) {
  FakeLimiter server(/*knows_streams=*/false);
  Use(server.target());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Call(std::to_string(i)), std::to_string(i));
  EXPECT_EQ(server.unary, 5);
  EXPECT_EQ(server.streams, 0);
}

TEST_F(CallStreamTest, ACallWithoutAnAnswerEndsInItsTimeAndLaterOnesAreAnswered) {
  FakeLimiter server;
  Use(server.target());
  const std::string unavailable(Error{.id = ErrorId::kServiceUnavailable}.row().name);
  EXPECT_EQ(Call("later", 200), unavailable);
  EXPECT_EQ(Call("a"), "a");
  server.AnswerAll();  // its calls have timed out
  EXPECT_EQ(Call("b"), "b");
}

// A stream must not outlive an expired certificate.
TEST_F(CallStreamTest, AnOldStreamIsReplacedWithoutAFailedCall) {
  FakeLimiter server(true, /*max_age_ms=*/1);
  Use(server.target());
  Begin("later");
  server.AwaitWaiting(1);
  const int64_t until_us = SystemClock::Get().MonotonicUs() + 200'000;
  for (int i = 0; server.streams < 3 || SystemClock::Get().MonotonicUs() < until_us; ++i) {
    ASSERT_EQ(Call(std::to_string(i)), std::to_string(i));
  }
  server.AnswerAll();
  EXPECT_EQ(Await(), std::vector<std::string>{"later"}) << "answered on the first stream";
}

TEST_F(CallStreamTest, AServiceThatStopsAnswersWhatRunsAndLaterCallsGoElsewhere) {
  FakeLimiter first;
  FakeLimiter second;
  Use(first.target());
  Begin("later");
  first.AwaitWaiting(1);
  loop().RunAndWait([&] { Use(first.target() + "," + second.target()); });
  // Continues until both servers have a stream.
  while (first.streams < 2 || second.streams < 1) ASSERT_EQ(Call("a"), "a");
  first.CloseStreams();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(Call(std::to_string(i)), std::to_string(i));
  first.AnswerAll();
  EXPECT_EQ(Await(), std::vector<std::string>{"later"});
}

TEST_F(CallStreamTest, ACallOnAReplicaThatDiesIsSentToAnother) {
  auto first = std::make_unique<FakeLimiter>();
  FakeLimiter second;
  Use(first->target() + "," + second.target());
  while (first->streams < 1 || second.streams < 1) ASSERT_EQ(Call("a"), "a");
  while (first->waiting() == 0) {
    Begin("later");
    while (first->waiting() + second.waiting() < begun_) std::this_thread::yield();
  }
  first->Stop();
  second.AwaitWaiting(begun_);
  second.AnswerAll();
  for (const std::string& answer : Await()) EXPECT_EQ(answer, "later");
}

TEST_F(CallStreamTest, MoreCallsThanAServerReadsAtATimeWaitAndAreAnswered) {
  FakeLimiter server;
  Use(server.target());
  ASSERT_EQ(Call("a"), "a");
  const int calls = kMaxCallsOfAStream + 100;
  for (int i = 0; i < calls; ++i) {
    Begin("later" + std::to_string(i));
    if (i < kMaxCallsOfAStream) server.AwaitWaiting(static_cast<size_t>(i) + 1);
  }
  server.AwaitWaiting(kMaxCallsOfAStream);
  EXPECT_EQ(server.waiting(), static_cast<size_t>(kMaxCallsOfAStream));
  server.AnswerAll();
  const auto answers = Await();
  EXPECT_EQ(answers.size(), static_cast<size_t>(calls));
  for (const std::string& answer : answers) EXPECT_TRUE(answer.starts_with("later")) << answer;
}

TEST_F(CallStreamTest, AClientThatGoesWhileCallsRunLeavesNothingBehind) {
  FakeLimiter server;
  {
    LoopPool loops(1);
    loops.Start();
    auto replicas = Replicas::Make(
        loops.loop(0), "ratelimit", server.target(),
        [this](const std::string& address) { return channels_.Channel(address, "ratelimit"); },
        nullptr);
    loops.loop(0).Post([&loops, replicas] {
      loops.loop(0).Spawn([](Loop& loop, std::shared_ptr<Replicas> replicas) -> Task<void> {
        (void)co_await Ask(loop, std::move(replicas), "later", 30'000);
      }(loops.loop(0), replicas));
    });
    server.AwaitWaiting(1);
    loops.Stop();
  }
  server.AnswerAll();
  server.Stop();
}

TEST_F(CallStreamTest, AnswersFromManyThreadsReachTheirCalls) {
  FakeLimiter server;
  Use(server.target());
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 50; ++i) Begin(std::to_string(round * 50 + i));
    Await();  // at most as many as a client keeps unwritten
  }
  auto answers = Await();
  std::vector<int> numbers;
  for (const std::string& answer : answers) numbers.push_back(std::stoi(answer));
  std::sort(numbers.begin(), numbers.end());
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(numbers[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace tollgate::rpc
