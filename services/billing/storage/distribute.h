// The ledger's tables on Citus, which spreads them over several PostgreSQL servers by ledger shard
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
    bool by_shard = false;  // else as a whole on one server
  };
  struct Step {
    std::string component;
    int64_t version = 0;
    std::string name;
  };
  std::vector<Step> migrations;    // missing: their tables are not among those below
  std::vector<Table> tables;       // still to be distributed
  int64_t distributed_tables = 0;  // before
  int64_t servers = 0;             // that may have shards
};

// What ApplyMigrations and then DistributeLedger would do. kOther when it would be refused: the
// database is no Citus coordinator, has no server for shards, is of a newer version, also has
// tables of another service, or has no ledger and the migrations make none.
sql::SqlResult<Distribution> PlanDistribution(sql::Connection& connection,
                                              std::span<const sql::Schema> schemas = {});

// Runs what is missing of these, beside billings that run; once more is harmless.
sql::SqlResult<void> ApplyMigrations(sql::Database& database, std::span<const sql::Schema> schemas);

// Distributes these tables, in one transaction that locks them until it has copied their rows.
// Tables with a ledger shard are cut into so many pieces, all together; the others go as they are
// to one server. shards is ignored when the ledger is distributed already and only has new tables.
sql::SqlResult<void> DistributeLedger(sql::Connection& connection, const Distribution& plan,
                                      int shards);

// Whether the ledger is distributed.
sql::SqlResult<bool> IsDistributed(sql::Connection& connection);

// Which nodes of Citus have the ledger shards, by their groups: a primary and its standbys are one.
struct LedgerNodes {
  static constexpr int32_t kNone = -1;
  std::vector<int32_t> of_shard;  // by ledger shard; empty: nothing is known
  bool operator==(const LedgerNodes&) const = default;
};
// From what the coordinator knows: no other node is asked. The ledger is distributed.
sql::SqlResult<LedgerNodes> ReadNodes(sql::Connection& connection);

// Whether the node takes connections and answers on them. The connection must be a new one, without
// sessions of its own at the nodes: then it waits for no longer than connecting may take, and
// leaves nothing behind at the coordinator. A node that is none any more answers.
sql::SqlResult<bool> NodeAnswers(sql::Connection& fresh, int32_t node);

// How many transactions over several servers are prepared for longer than this and neither
// committed nor rolled back, as a crash leaves them until Citus ends them; their rows are locked.
// Of the workers that answer. The ledger is distributed.
sql::SqlResult<int64_t> CountInDoubt(sql::Connection& connection, int64_t for_seconds);

// First in a transaction that locks wallets: keeps their ledger shard on its server until the
// transaction ends. The lock of a row ends when Citus moves it to another server, and a statement
// that writes keeps it from that. Does nothing elsewhere.
sql::SqlResult<void> KeepInPlace(sql::Connection& connection, int32_t shard);

}  // namespace tollgate::billing
