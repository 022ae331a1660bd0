#include "services/inference_router/admin/drained_engines.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "services/inference_router/balancer/select_engine.h"
#include "services/inference_router/balancer/testing/two_engines.h"

namespace tollgate::inference_router {
namespace {

class DrainedEnginesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ =
        (std::filesystem::temp_directory_path() / ("tollgate-drained-" + std::to_string(getpid())))
            .string();
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }
  static std::string Selected(const RoutingTable& table) {
    const Selection selection = SelectEngine(table.Find("ns/m")->engines, {}, 1, 0);
    if (selection.engine == nullptr) return "";
    selection.engine->Leave();
    return selection.engine->id();
  }
  std::string path_;
};

TEST_F(DrainedEnginesTest, ADrainedEngineGetsNoRequestsUntilItIsResumed) {
  const RoutingTable table(TwoEngines(), nullptr);
  DrainedEngines drained;
  ASSERT_TRUE(drained.Open(path_).ok());
  EXPECT_EQ(Selected(table), "a");
  ASSERT_TRUE(drained.Set("a", true).ok());
  drained.Mark(table, 1);
  EXPECT_EQ(Selected(table), "b");
  EXPECT_TRUE(table.engines()[0]->Healthy(1)) << "drained is not unhealthy";
  ASSERT_TRUE(drained.Set("b", true).ok());
  drained.Mark(table, 1);
  EXPECT_EQ(Selected(table), "");
  ASSERT_TRUE(drained.Set("a", false).ok());
  drained.Mark(table, 1);
  EXPECT_EQ(Selected(table), "a");
}

TEST_F(DrainedEnginesTest, ARestartAndAChangedCatalogKeepIt) {
  {
    DrainedEngines drained;
    ASSERT_TRUE(drained.Open(path_).ok());
    ASSERT_TRUE(drained.Set("a", true).ok());
    ASSERT_TRUE(drained.Set("a", true).ok());
  }
  DrainedEngines again;
  ASSERT_TRUE(again.Open(path_).ok());
  EXPECT_EQ(again.ids(), std::set<std::string>{"a"});
  const RoutingTable table(TwoEngines(), nullptr);
  again.Mark(table, 1);
  // With another concurrency the engine gets a new state.
  const RoutingTable changed(TwoEngines(7), &table);
  EXPECT_NE(changed.engines()[0], table.engines()[0]);
  again.Mark(changed, 1);
  EXPECT_EQ(Selected(changed), "b");
}

TEST_F(DrainedEnginesTest, WhatCannotBeWrittenChangesNothing) {
  DrainedEngines drained;
  ASSERT_TRUE(drained.Open(path_ + "-no-such-folder/x").ok());
  EXPECT_FALSE(drained.Set("a", true).ok());
  EXPECT_TRUE(drained.ids().empty());
}

}  // namespace
}  // namespace tollgate::inference_router
