// Distribution of the ledger's tables with Citus, over several PostgreSQL servers by ledger shard
// (docs/adr/0040).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::billing {

struct Distribution {
  struct Table {
    std::string name;
    int64_t rows = 0;       // estimated by the server
    int64_t bytes = 0;      // with its indexes
    bool by_shard = false;  // else the whole table is on one server
  };
  struct Step {
    std::string component;
    int64_t version = 0;
    std::string name;
  };
  std::vector<Step> migrations;    // missing ones; their tables are not in the list below
  std::vector<Table> tables;       // to be distributed
  int64_t distributed_tables = 0;  // distributed before
  int64_t servers = 0;             // number of servers for shards
};

// Returns what ApplyMigrations and then DistributeLedger would do. kOther if they would be refused:
// the database is not a Citus coordinator, has no server for shards, is newer than this version,
// also has tables of another service, or has no ledger and the migrations create none.
sql::SqlResult<Distribution> PlanDistribution(sql::Connection& connection,
                                              std::span<const sql::Schema> schemas = {});

// Runs missing migrations. Safe while billing runs, and to repeat.
sql::SqlResult<void> ApplyMigrations(sql::Database& database, std::span<const sql::Schema> schemas);

// Distributes these tables in one transaction, which locks them until their rows are copied. Tables
// with a ledger shard are cut into this many pieces, colocated; the others move as a whole to one
// server. shards is ignored if the ledger is already distributed and only has new tables.
sql::SqlResult<void> DistributeLedger(sql::Connection& connection, const Distribution& plan,
                                      int shards);

// Whether the ledger is distributed.
sql::SqlResult<bool> IsDistributed(sql::Connection& connection);

// Which nodes of Citus have which ledger shards, by group: a primary and its standbys form one
// group.
struct LedgerNodes {
  static constexpr int32_t kNone = -1;
  std::vector<int32_t> of_shard;  // node by ledger shard; empty: unknown
  bool operator==(const LedgerNodes&) const = default;
};
// Reads the coordinator's metadata and queries no other node. Requires a distributed ledger.
sql::SqlResult<LedgerNodes> ReadNodes(sql::Connection& connection);

// Whether the node accepts connections and answers. The connection must be new, without sessions at
// the nodes: then the call takes no longer than the connect timeout and leaves nothing behind at
// the coordinator. Returns true for a node that has left the cluster.
sql::SqlResult<bool> NodeAnswers(sql::Connection& fresh, int32_t node);

// Number of transactions over several servers that have been prepared for longer than this and are
// neither committed nor rolled back, as after a crash, until Citus ends them. Their rows are
// locked. Counts the workers that answer. Requires a distributed ledger.
sql::SqlResult<int64_t> CountInDoubt(sql::Connection& connection, int64_t for_seconds);

// Must be the first statement of a transaction that locks wallets: keeps their ledger shard on its
// server until the transaction ends. A row lock is lost when Citus moves the row to another server;
// a write statement prevents the move. Does nothing on other databases.
sql::SqlResult<void> KeepInPlace(sql::Connection& connection, int32_t shard);

}  // namespace tollgate::billing
