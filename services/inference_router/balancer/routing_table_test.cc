#include "services/inference_router/balancer/routing_table.h"

#include <gtest/gtest.h>

#include "services/inference_router/balancer/testing/two_engines.h"

namespace tollgate::inference_router {
namespace {

TEST(RoutingTable, KeepsUnchangedEnginesAndTheirLoad) {
  RoutingTable previous(TwoEngines(), nullptr);
  ASSERT_TRUE(previous.engines()[0]->TryEnter());
  catalog::v1::Snapshot changed = TwoEngines();
  changed.mutable_pools(0)->mutable_engines(1)->set_base_url("http://127.0.0.1:9999");
  RoutingTable current(changed, &previous);
  EXPECT_EQ(current.engines()[0], previous.engines()[0]);
  EXPECT_EQ(current.engines()[0]->running(), 1);
  EXPECT_NE(current.engines()[1], previous.engines()[1]);
}

TEST(RoutingTable, AChangedWeightKeepsTheEngineAndItsLoad) {
  RoutingTable previous(TwoEngines(), nullptr);
  ASSERT_TRUE(previous.engines()[0]->TryEnter());
  catalog::v1::Snapshot changed = TwoEngines();
  changed.mutable_pools(0)->mutable_engines(0)->set_weight(0);
  RoutingTable current(changed, &previous);
  ASSERT_EQ(current.engines()[0], previous.engines()[0]);
  EXPECT_EQ(current.engines()[0]->running(), 1);
  EXPECT_EQ(current.engines()[0]->weight(), 0);
  RoutingTable back(TwoEngines(), &current);
  EXPECT_EQ(back.engines()[0]->weight(), 1);
}

TEST(RoutingTable, OnlyAnEngineThatIsAddedLaterStartsSlowly) {
  const RoutingOptions options = {.slow_start_us = 10'000, .now_us = 1'000'000};
  catalog::v1::Snapshot one = TwoEngines();
  one.mutable_pools(0)->mutable_engines()->RemoveLast();
  RoutingTable first(one, nullptr, options);
  EXPECT_EQ(first.engines()[0]->Share(options.now_us), 1'000) << "the start of the router";
  RoutingTable second(TwoEngines(), &first, options);
  EXPECT_EQ(second.engines()[0]->Share(options.now_us), 1'000);
  EXPECT_EQ(second.engines()[1]->Share(options.now_us), 100);
  EXPECT_EQ(second.engines()[1]->Share(options.now_us + 5'000), 500);
  // The same engines with new states, because max_concurrency has changed.
  RoutingTable third(TwoEngines(7), &second, {.slow_start_us = 10'000, .now_us = 1'005'000});
  EXPECT_NE(third.engines()[1], second.engines()[1]);
  EXPECT_EQ(third.engines()[0]->Share(1'005'000), 1'000);
  EXPECT_EQ(third.engines()[1]->Share(1'005'000), 500) << "goes on";
}

class EachAddress : public ::testing::Test {
 protected:
  EachAddress() {
    auto* engine = snapshot_.mutable_pools(0)->mutable_engines(0);
    engine->set_base_url("https://engines.local:8000");
    engine->set_each_address(true);
  }
  RoutingOptions Options(std::vector<std::string> addresses) {
    return {.slow_start_us = 10'000,
            .now_us = 1'000'000,
            .addresses_of = [addresses](const std::string& target) {
              EXPECT_EQ(target, "engines.local:8000");
              return addresses;
            }};
  }
  static std::vector<std::string> Ids(const RoutingTable& table) {
    std::vector<std::string> ids;
    for (const EnginePointer& engine : table.Find("ns/m")->engines) ids.push_back(engine->id());
    return ids;
  }
  catalog::v1::Snapshot snapshot_ = TwoEngines();
};

TEST_F(EachAddress, IsAnEngineThatComesAndGoes) {
  const RoutingTable unknown(snapshot_, nullptr, Options({}));
  EXPECT_EQ(Ids(unknown), (std::vector<std::string>{"a", "b"})) << "not looked up yet";

  const RoutingOptions two = Options({"10.0.0.2:8000", "10.0.0.1:8000"});
  EXPECT_TRUE(unknown.AddressesChanged(two.addresses_of));
  const RoutingTable table(snapshot_, &unknown, two);
  EXPECT_EQ(Ids(table), (std::vector<std::string>{"a@10.0.0.1", "a@10.0.0.2", "b"}));
  const EngineState& first = *table.engines()[0];
  EXPECT_EQ(first.catalog_id(), "a");
  EXPECT_EQ(first.base().origin.address, "10.0.0.1");
  EXPECT_EQ(first.base().origin.host, "engines.local") << "the name in its certificate";
  EXPECT_EQ(first.Share(two.now_us), 1'000) << "not a new engine: only its address is known now";
  EXPECT_FALSE(table.AddressesChanged(Options({"10.0.0.1:8000", "10.0.0.2:8000"}).addresses_of))
      << "in another order";

  const RoutingOptions others = Options({"10.0.0.2:8000", "10.0.0.3:8000"});
  EXPECT_TRUE(table.AddressesChanged(others.addresses_of));
  const RoutingTable next(snapshot_, &table, others);
  EXPECT_EQ(Ids(next), (std::vector<std::string>{"a@10.0.0.2", "a@10.0.0.3", "b"}));
  EXPECT_EQ(next.engines()[0], table.engines()[1]) << "keeps its load and health";
  EXPECT_EQ(next.engines()[1]->Share(others.now_us), 100) << "starts slowly";
}

TEST_F(EachAddress, MayBeOfIpv6) {
  const RoutingTable table(snapshot_, nullptr, Options({"[fd00::1]:8000", "[fd00::2]:8000"}));
  EXPECT_EQ(Ids(table), (std::vector<std::string>{"a@fd00::1", "a@fd00::2", "b"}));
  EXPECT_EQ(table.engines()[0]->base().origin.address, "fd00::1");
}

TEST_F(EachAddress, OnlyWhereTheCatalogSaysSo) {
  snapshot_.mutable_pools(0)->mutable_engines(0)->set_each_address(false);
  const RoutingOptions options = Options({"10.0.0.1:8000"});
  const RoutingTable table(snapshot_, nullptr, options);
  EXPECT_EQ(Ids(table), (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(table.AddressesChanged(options.addresses_of));
}

TEST(RoutingTable, RequestsOfAModelHaveItsPriority) {
  catalog::v1::Snapshot snapshot = TwoEngines();
  EXPECT_EQ(RoutingTable(snapshot, nullptr).Find("ns/m")->priority, PriorityClass::kNormal);
  snapshot.mutable_models(0)->set_priority(catalog::v1::PRIORITY_HIGH);
  EXPECT_EQ(RoutingTable(snapshot, nullptr).Find("ns/m")->priority, PriorityClass::kHigh);
  snapshot.mutable_models(0)->set_priority(catalog::v1::PRIORITY_LOW);
  EXPECT_EQ(RoutingTable(snapshot, nullptr).Find("ns/m")->priority, PriorityClass::kLow);
}

TEST(RoutingTable, KeepsWhatAPoolHasLearntOfPrompts) {
  RoutingTable previous(TwoEngines(), nullptr);
  RoutingTable current(TwoEngines(1), &previous);
  ASSERT_NE(previous.Find("ns/m")->prefixes, nullptr);
  EXPECT_EQ(current.Find("ns/m")->prefixes, previous.Find("ns/m")->prefixes);
  catalog::v1::Snapshot one = TwoEngines();
  one.mutable_pools(0)->mutable_engines()->RemoveLast();
  EXPECT_EQ(RoutingTable(one, nullptr).Find("ns/m")->prefixes, nullptr) << "nothing to choose";
}

TEST(RoutingTable, ACacheIsSharedByWorkspacesOnlyIfAllEnginesShareIt) {
  catalog::v1::Snapshot snapshot = TwoEngines();
  snapshot.mutable_pools(0)->mutable_engines(0)->set_shared_cache(true);
  EXPECT_FALSE(RoutingTable(snapshot, nullptr).Find("ns/m")->shared_cache);
  snapshot.mutable_pools(0)->mutable_engines(1)->set_shared_cache(true);
  EXPECT_TRUE(RoutingTable(snapshot, nullptr).Find("ns/m")->shared_cache);
}

TEST(RoutingTable, LeavesOutAnEngineWithAnInvalidBaseUrl) {
  catalog::v1::Snapshot snapshot = TwoEngines();
  snapshot.mutable_pools(0)->mutable_engines(0)->set_base_url("nonsense");
  RoutingTable table(snapshot, nullptr);
  EXPECT_EQ(table.unusable(), std::vector<std::string>{"a"});
  EXPECT_EQ(table.Find("ns/m")->engines.size(), 1u);
  EXPECT_EQ(table.Find("ns/M"), nullptr) << "ids are case-sensitive";
}

TEST(RoutingTable, UnlistedIdsHaveARouteOnlyIfTheCatalogHasOne) {  // decision 20
  catalog::v1::Snapshot snapshot = TwoEngines();
  EXPECT_EQ(RoutingTable(snapshot, nullptr).unlisted(), nullptr);
  snapshot.mutable_unlisted()->set_pool("p");
  snapshot.mutable_unlisted()->set_context_window(512);
  snapshot.mutable_unlisted()->set_serving(true);
  const RoutingTable table(snapshot, nullptr);
  ASSERT_NE(table.unlisted(), nullptr);
  EXPECT_TRUE(table.unlisted()->unlisted);
  EXPECT_EQ(table.unlisted()->engine_model, "") << "the requested id";
  EXPECT_EQ(table.unlisted()->context_window, 512);
  EXPECT_EQ(table.unlisted()->engines.size(), 2u);
  EXPECT_FALSE(table.Find("ns/m")->unlisted);
  EXPECT_EQ(table.Find(""), nullptr) << "the unlisted route is not a model";
}

}  // namespace
}  // namespace tollgate::inference_router
