// The ledger's tables for tests. With TOLLGATE_TEST_CITUS in the environment they are distributed
// over workers of Citus.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "services/billing/storage/distribute.h"
#include "services/billing/storage/store.h"
#include "tests/support/postgres.h"

namespace tollgate::billing {

// Distributes the tables that exist, if the tests' server has workers. In few shards: each costs
// time, and every test makes them again.
inline void DistributeForTests(sql::Database& database) {
  if (database.dialect() == sql::Dialect::kSqlite) return;
  if (testing::TestPostgres::Shared()->workers() == 0) return;
  auto connection = database.Connect();
  ASSERT_TRUE(connection.ok()) << connection.error().message;
  auto plan = PlanDistribution(**connection);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  auto done = DistributeLedger(**connection, *plan, 4);
  ASSERT_TRUE(done.ok()) << done.error().message;
}

// For TestPostgres::MakeDatabase.
inline void MakeLedgerSchema(const std::string& url) {
  const auto database = *sql::Database::Open({.url = url});
  const auto migrated = MigrateLedger(*database);
  ASSERT_TRUE(migrated.ok()) << migrated.error().message;
  DistributeForTests(*database);
}

}  // namespace tollgate::billing
