// With TOLLGATE_TEST_CITUS in the environment, tests of the ledger run on Citus.
#pragma once

#include <gtest/gtest.h>

#include "services/billing/storage/distribute.h"
#include "tests/support/postgres.h"

namespace tollgate::billing {

// Distributes the tables that have been made, when the tests' server has workers. In few pieces:
// each costs time, and every test makes them anew.
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

}  // namespace tollgate::billing
