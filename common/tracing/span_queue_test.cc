// The queue is bounded, and producers of spans never wait.
#include "common/tracing/span_queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace tollgate::tracing {
namespace {

std::vector<Span> SomeLarge(size_t count) {
  std::vector<Span> spans(count);
  for (Span& span : spans) span.attributes = {{"key", std::string(100, 'v')}};
  return spans;
}
const size_t kOne = SomeLarge(1)[0].Bytes();

TEST(SpanQueue, TakesAllSpansOfARequestOrNone) {
  SpanQueue queue(3 * kOne);
  EXPECT_TRUE(queue.Put(SomeLarge(2)));
  EXPECT_FALSE(queue.Put(SomeLarge(2)));
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_TRUE(queue.Put(SomeLarge(1)));
  EXPECT_EQ(queue.bytes(), 3 * kOne);
}

TEST(SpanQueue, WhatIsBeingSentCountsAsWaiting) {
  SpanQueue queue(2 * kOne);
  EXPECT_TRUE(queue.Put(SomeLarge(2)));
  EXPECT_EQ(queue.Take(10, 0).size(), 2u);
  EXPECT_FALSE(queue.Put(SomeLarge(1)));
  queue.Forget();
  EXPECT_EQ(queue.bytes(), 0u);
  EXPECT_TRUE(queue.Put(SomeLarge(1)));
}

TEST(SpanQueue, AFullMessageDoesNotLinger) {
  SpanQueue queue(1 << 20);
  std::vector<Span> taken;
  std::thread taker([&] { taken = queue.Take(8, 60'000); });
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(queue.Put(SomeLarge(1)));
  taker.join();
  EXPECT_EQ(taken.size(), 8u);
}

TEST(SpanQueue, AfterCloseTheRestIsTakenAndNothingIsPut) {
  SpanQueue queue(1 << 20);
  EXPECT_TRUE(queue.Put(SomeLarge(5)));
  queue.Close();
  EXPECT_FALSE(queue.Put(SomeLarge(1)));
  EXPECT_EQ(queue.Take(3, 60'000).size(), 3u);
  EXPECT_EQ(queue.Take(3, 60'000).size(), 2u);
  EXPECT_TRUE(queue.Take(3, 60'000).empty());
}

}  // namespace
}  // namespace tollgate::tracing
