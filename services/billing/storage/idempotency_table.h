// The table of idempotency keys (docs/design/ledger.md 12).
#pragma once

#include <string_view>

namespace tollgate::billing {

// answer: sealed by the gateway; NULL until it is known. Rows are deleted after 24 h; the
// verification does not read them.
inline constexpr std::string_view kIdempotencyTable = R"sql(
CREATE TABLE idempotency (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  digest {blob} NOT NULL,
  request {blob} NOT NULL,
  body_digest {blob} NOT NULL,
  created_us {int} NOT NULL,
  answer {blob},
  PRIMARY KEY (shard, workspace, digest)
);
CREATE INDEX idempotency_created ON idempotency (created_us);
)sql";

}  // namespace tollgate::billing
