#include "gateway/pipeline/parse.h"

#include <gtest/gtest.h>

#include <future>

#include "common/json/work.h"
#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: fakes and event builders

// Keeps the pool's only thread busy, so that submitted work waits.
class BusyPool {
 public:
  explicit BusyPool(ThreadPool& pool) {
    EXPECT_TRUE(pool.Submit([this] {
      started_.set_value();
      release_.get_future().wait();
    }));
    started_.get_future().wait();
  }
  void Release() { release_.set_value(); }

 private:
  std::promise<void> started_;
  std::promise<void> release_;
};

std::string LargeText() { return std::string(kMaxBytesDecodedOnLoop, 'a'); }
std::string LargeBody() {
  return R"({"model":"ns/model","messages":[{"role":"user","content":")" + LargeText() + R"("}]})";
}

using LargeBodyTest = PipelineFixture;

TEST_F(LargeBodyTest, IsAnsweredLikeASmallOne) {
  PushEvents({Started(), Text("ok"), Finish(), End(5, 2)});
  EXPECT_EQ(Send(LargeBody())->status, 200);
  ASSERT_EQ(rig.inference->started.size(), 1u);
  EXPECT_EQ(rig.inference->started[0].members_json(),
            R"("messages":[{"role":"user","content":")" + LargeText() + R"("}])");
}

TEST_F(LargeBodyTest, ErrorsAreThoseOfASmallOne) {
  EXPECT_EQ(ErrorOf(Send(LargeBody() + "x")), "400 bad_request invalid_request_error");
  EXPECT_EQ(ErrorOf(Send(R"({"model":5,"x":")" + LargeText() + "\"}")),
            "400 bad_request invalid_request_error param=model");
  HttpRequest request = rig.ChatRequest(LargeBody());
  request.headers[1].second = "text/plain";
  EXPECT_EQ(ErrorOf(rig.Run(ChatSurface(), request)), "400 bad_request invalid_request_error");
}

TEST_F(LargeBodyTest, IsRefusedWhenTooManyWaitAndSmallOnesAreNot) {
  BusyPool busy(*rig.decoders);
  while (rig.decoders->Submit([] {})) {
  }
  PushEvents({Started(), Text("ok"), Finish(), End(5, 2)});
  EXPECT_EQ(ErrorOf(Send(LargeBody())), "503 service_unavailable service_unavailable retry=1");
  ExpectNoSlots();
  EXPECT_EQ(Send()->status, 200);
  busy.Release();
}

TEST_F(LargeBodyTest, IsNotDecodedOnceTheClientHasDisconnected) {
  BusyPool busy(*rig.decoders);
  const Answer answer = Send(LargeBody() + "x", [&](FakeExchange& exchange) {
    // Runs on the loop after the handler has passed the body to the pool.
    rig.pool.loop(0).RunAfter(1, [&] {
      exchange.Disconnect();
      busy.Release();
    });
  });
  EXPECT_EQ(answer->answers, 0);
  std::promise<uint64_t> parsed;
  rig.decoders->Submit([&] { parsed.set_value(json::internal::parsed_bytes); });
  EXPECT_EQ(parsed.get_future().get(), 0u);
  EXPECT_TRUE(rig.limiter->acquired.empty());
  EXPECT_TRUE(rig.inference->started.empty());
}

}  // namespace
}  // namespace tollgate::gateway
