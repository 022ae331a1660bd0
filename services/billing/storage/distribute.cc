#include "services/billing/storage/distribute.h"

#include <algorithm>

#include "common/base/ledger_shard.h"
#include "common/base/try.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

// Tables with which the others are colocated.
constexpr std::string_view kFirstByShard = "wallet";
constexpr std::string_view kFirstWhole = "audit_head";

SqlResult<int64_t> Number(Connection& db, std::string_view text) {
  int64_t number = 0;
  TRY(db.Query(text, {}, [&](const Row& row) { number = row.Int(0); }));
  return number;
}

// Returns the name of a component of another service, or an empty string.
SqlResult<std::string> ComponentOfOthers(Connection& db) {
  std::string other;
  TRY(auto migrated,
      Number(db, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('schema_migration')"));
  if (migrated == 0) return other;
  TRY(
      db.Query("SELECT component FROM schema_migration WHERE component <> 'audit'"
               " AND component NOT LIKE 'billing%' ORDER BY component LIMIT 1",
               {}, [&](const Row& row) { other = row.Text(0); }));
  return other;
}

std::string Call(const Distribution::Table& table, bool is_first, int shards) {
  const std::string_view first = table.by_shard ? kFirstByShard : kFirstWhole;
  std::string text = "SELECT create_distributed_table('" + table.name + "', ";
  text += table.by_shard ? "'shard'" : "NULL";
  text += ", colocate_with => '" + (is_first ? "none" : std::string(first)) + "'";
  if (is_first && table.by_shard) text += ", shard_count => " + std::to_string(shards);
  return text + ");";
}

}  // namespace

SqlResult<bool> IsDistributed(Connection& db) {
  if (db.dialect() == sql::Dialect::kSqlite) return false;
  // The extension may be newer than the connection's cache.
  TRY(auto has_citus,
      Number(db, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('pg_dist_partition')"));
  if (has_citus == 0) return false;
  TRY(auto found,
      Number(db,
             "SELECT count(*) FROM pg_dist_partition WHERE logicalrelid = to_regclass('wallet')"));
  return found > 0;
}

SqlResult<LedgerNodes> ReadNodes(Connection& db) {
  LedgerNodes nodes;
  nodes.of_shard.assign(kLedgerShards, LedgerNodes::kNone);
  TRY(db.Query(
      "WITH piece AS MATERIALIZED (SELECT s, get_shard_id_for_distribution_column('wallet', s) AS"
      " id FROM generate_series(0::bigint, $1::bigint - 1) s)"
      " SELECT s, CAST(p.groupid AS BIGINT) FROM piece JOIN pg_dist_placement p ON p.shardid ="
      " piece.id",
      {kLedgerShards}, [&](const Row& row) {
        nodes.of_shard[static_cast<size_t>(row.Int(0))] = static_cast<int32_t>(row.Int(1));
      }));
  return nodes;
}

SqlResult<bool> NodeAnswers(Connection& fresh, int32_t node) {
  bool answers = true;
  TRY(fresh.Query(
      "SELECT CASE WHEN citus_check_connection_to_node(nodename, nodeport) THEN 1 ELSE 0 END FROM"
      " pg_dist_node WHERE noderole = 'primary' AND groupid = $1::int",
      {node}, [&](const Row& row) { answers = row.Int(0) != 0; }));
  return answers;
}

SqlResult<int64_t> CountInDoubt(Connection& db, int64_t for_seconds) {
  return Number(db,
                "SELECT CAST(coalesce(sum(result::bigint), 0) AS BIGINT) FROM"
                " run_command_on_workers($$SELECT count(*) FROM pg_prepared_xacts WHERE database ="
                " current_database() AND prepared <= now() - interval '" +
                    std::to_string(for_seconds) + " seconds'$$) WHERE success");
}

SqlResult<void> KeepInPlace(Connection& db, int32_t shard) {
  if (!db.distributed()) return {};
  // Workspace names are never empty.
  TRY(db.Execute("DELETE FROM wallet WHERE shard = $1 AND workspace = ''", {shard}));
  return {};
}

SqlResult<void> ApplyMigrations(sql::Database& database, std::span<const sql::Schema> schemas) {
  for (const sql::Schema& schema : schemas) {
    TRY(database.Migrate(schema.component, schema.migrations));
  }
  return {};
}

SqlResult<Distribution> PlanDistribution(Connection& db, std::span<const sql::Schema> schemas) {
  if (!db.distributed()) {
    return sql::Refused("the database is not on a Citus coordinator: it lacks the extension citus");
  }
  TRY(auto other, ComponentOfOthers(db));
  if (!other.empty()) {
    return sql::Refused("the database also has tables of \"" + other +
                        "\": a distributed ledger requires a separate database");
  }
  Distribution plan;
  for (const sql::Schema& schema : schemas) {
    TRY(auto missing, sql::MissingMigrations(db, schema));
    for (const sql::Migration& one : missing) {
      plan.migrations.push_back(
          {std::string(schema.component), one.version, std::string(one.name)});
    }
  }
  TRY(auto migrated,
      Number(
          db,
          "SELECT count(*) FROM (VALUES ('wallet'), ('audit_head'), ('schema_migration')) t(name)"
          " WHERE to_regclass(name) IS NOT NULL"));
  if (migrated < 3 && plan.migrations.empty())
    return sql::Refused("there is no ledger in this database");
  TRY(auto servers, Number(db,
                           "SELECT count(*) FROM pg_dist_node WHERE noderole = 'primary' AND"
                           " isactive AND shouldhaveshards"));
  plan.servers = servers;
  if (plan.servers == 0) {
    return sql::Refused("no server may have shards: add workers with citus_add_node");
  }
  auto read = db.Query(
      "SELECT c.relname, EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid"
      " AND a.attname = 'shard' AND NOT a.attisdropped),"
      " CAST((SELECT coalesce(sum(greatest(p.reltuples, 0)), 0) FROM pg_class p WHERE p.oid = c.oid"
      " OR p.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = c.oid)) AS BIGINT),"
      " CAST((SELECT sum(pg_total_relation_size(p.oid)) FROM pg_class p WHERE p.oid = c.oid"
      " OR p.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = c.oid)) AS BIGINT),"
      " EXISTS (SELECT 1 FROM pg_dist_partition d WHERE d.logicalrelid = c.oid)"
      " FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace"
      " AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> 'schema_migration'"
      " AND NOT EXISTS (SELECT 1 FROM pg_depend x WHERE x.objid = c.oid AND x.deptype = 'e')"
      // Tables that the others are colocated with come first.
      " ORDER BY c.relname <> 'wallet', c.relname <> 'audit_head', c.relname",
      {}, [&](const Row& row) {
        if (row.Int(4) != 0) {
          ++plan.distributed_tables;
        } else {
          plan.tables.push_back({row.Text(0), row.Int(2), row.Int(3), row.Int(1) != 0});
        }
      });
  if (!read.ok()) return Fail{std::move(read).error()};
  return plan;
}

SqlResult<void> DistributeLedger(Connection& db, const Distribution& plan, int shards) {
  TRY(auto tx, sql::Transaction::Begin(db));
  auto done = db.ExecuteScript(
      "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;"
      " SET LOCAL idle_in_transaction_session_timeout = 0");
  for (const Distribution::Table& table : plan.tables) {
    if (!done.ok()) return done;
    const bool is_first = table.name == (table.by_shard ? kFirstByShard : kFirstWhole);
    done = db.ExecuteScript(Call(table, is_first, shards));
  }
  if (done.ok()) done = tx.Commit();
  // The copied rows are still in the old tables.
  for (const Distribution::Table& table : plan.tables) {
    if (!done.ok()) return done;
    done = db.ExecuteScript(
        "SET statement_timeout = 0; SELECT"
        " truncate_local_data_after_distributing_table('" +
        table.name + "')");
  }
  return done;
}

}  // namespace tollgate::billing
