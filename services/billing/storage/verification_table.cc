#include "services/billing/storage/verification_table.h"

namespace tollgate::billing {
namespace {

// cancel: 1 if an operator cancelled the run. violations: one per line.
constexpr std::string_view kVerificationTable = R"sql(
CREATE TABLE ledger_verification (
  id {text} PRIMARY KEY,
  caller_request {text} NOT NULL UNIQUE,
  actor {text} NOT NULL,
  workspace {text} NOT NULL,
  state {int} NOT NULL,
  cancel {int} NOT NULL,
  created_us {int} NOT NULL,
  reported_us {int} NOT NULL,
  ended_us {int} NOT NULL,
  workspaces {int} NOT NULL,
  entries {int} NOT NULL,
  holds {int} NOT NULL,
  usage_records {int} NOT NULL,
  violations {text} NOT NULL
){strict};
CREATE UNIQUE INDEX ledger_verification_running ON ledger_verification (state) WHERE state = 1;
)sql";

}  // namespace

std::span<const sql::Migration> VerificationMigrations() {
  static const sql::Migration migrations[] = {{1, "verifications", kVerificationTable}};
  return migrations;
}

}  // namespace tollgate::billing
