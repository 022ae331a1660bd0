#include "gateway/worker/keyed_queue.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/runtime/testing/run_coro.h"

namespace tollgate::gateway {
namespace {

using tollgate::testing::RunTask;

struct Scene {
  explicit Scene(Loop& on) : loop(on), turns(std::make_shared<Turns>(on, 2)) {}
  Loop& loop;
  std::shared_ptr<Turns> turns;
  int running = 0;
  int most = 0;
  int turned_away = 0;
  std::vector<int> order;
};

Task<void> Come(Scene& scene, std::string name, int number) {
  const Turns::Turn turn = co_await scene.turns->Take(std::move(name));
  if (!turn) {
    ++scene.turned_away;
    co_return;
  }
  scene.most = std::max(scene.most, ++scene.running);
  co_await scene.loop.Sleep(1);
  --scene.running;
  scene.order.push_back(number);
}

TEST(Turns, OneAtATimeInOrderAndOnlySoManyWait) {
  RunTask([](Loop& loop) -> Task<int> {
    Scene scene(loop);
    for (int i = 0; i < 5; ++i) loop.Spawn(Come(scene, "a", i));
    while (scene.order.size() + static_cast<size_t>(scene.turned_away) < 5) co_await loop.Sleep(1);
    EXPECT_EQ(scene.most, 1);
    EXPECT_EQ(scene.order, (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(scene.turned_away, 2);
    EXPECT_EQ(scene.turns->size(), 0u);
    co_return 0;
  });
}

TEST(Turns, NamesDoNotWaitForEachOther) {
  RunTask([](Loop& loop) -> Task<int> {
    Scene scene(loop);
    loop.Spawn(Come(scene, "a", 0));
    loop.Spawn(Come(scene, "b", 1));
    while (scene.order.size() < 2) co_await loop.Sleep(1);
    EXPECT_EQ(scene.most, 2);
    co_return 0;
  });
}

TEST(Turns, WhoComesWhileATurnIsHandedOnWaitsBehind) {
  RunTask([](Loop& loop) -> Task<int> {
    Scene scene(loop);
    {
      const Turns::Turn first = co_await scene.turns->Take("a");
      loop.Spawn(Come(scene, "a", 0));
      co_await loop.Sleep(0);
    }
    loop.Spawn(Come(scene, "a", 1));
    while (scene.order.size() < 2) co_await loop.Sleep(1);
    EXPECT_EQ(scene.most, 1);
    EXPECT_EQ(scene.order, (std::vector<int>{0, 1}));
    co_return 0;
  });
}

}  // namespace
}  // namespace tollgate::gateway
