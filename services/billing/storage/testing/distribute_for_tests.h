// With TOLLGATE_TEST_CITUS in the environment the ledger's tests run on Citus.
#pragma once

#include <gtest/gtest.h>

#include "services/billing/storage/distribute.h"
#include "tests/support/postgres.h"

namespace tollgate::billing {

// Distributes the created tables if the test server has workers. Uses few pieces: each takes time,
// and every test creates them again.
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
