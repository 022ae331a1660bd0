// The tables of the archive (docs/design/ledger.md 12).
#pragma once

#include <string_view>

namespace tollgate::billing {

// archive: one row per archived month. archive_workspace: where the verification of each workspace
// starts, because earlier entries are only in the archive.
inline constexpr std::string_view kArchiveTables = R"sql(
CREATE TABLE archive (
  month {int} PRIMARY KEY,
  cut_us {int} NOT NULL,
  at_us {int} NOT NULL,
  manifest {blob} NOT NULL,
  entries {int} NOT NULL,
  holds {int} NOT NULL,
  usage_records {int} NOT NULL,
  actor {text} NOT NULL
) {keyed};
CREATE TABLE archive_workspace (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  month {int} NOT NULL,
  sequence {int} NOT NULL,
  head {blob} NOT NULL,
  state {blob} NOT NULL,
  PRIMARY KEY (shard, workspace)
) {keyed};
)sql";

// archive_run: days on which an automatic run was started, so that only one replica runs. The index
// finds workspaces that a failed check has frozen; they are queried often.
inline constexpr std::string_view kArchiveRuns = R"sql(
CREATE TABLE archive_run (
  day {int} PRIMARY KEY,
  at_us {int} NOT NULL
) {keyed};
CREATE INDEX wallet_frozen ON wallet (workspace) WHERE frozen = 3;
)sql";

// digest: SHA-256 of the state, which the manifest of the month and the checkpoints repeat. NULL in
// rows of earlier versions, until the state was recomputed from the archive.
inline constexpr std::string_view kArchiveDigests = R"sql(
ALTER TABLE archive_workspace ADD COLUMN digest {blob};
)sql";

}  // namespace tollgate::billing
