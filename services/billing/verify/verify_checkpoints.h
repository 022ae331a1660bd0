// Compares the ledger with its signed checkpoints: finds a chain that was rewritten or cut, also
// the one of billing's audit log, a workspace that was deleted, a standby that lost acknowledged
// entries, and archived months whose state was changed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/sql/sql.h"
#include "services/billing/verify/verify.h"
#include "services/billing/verify/verify_findings.h"

namespace tollgate::billing {

class Anchors {
 public:
  // Reads the whole file and adds its faults to the violations. Must be called before the compared
  // snapshot of the ledger begins.
  static BasicResult<Anchors, std::string> Read(const std::string& file,
                                                const std::string& public_key_file,
                                                VerifyReport& report);

  // Compares with the entries of one workspace, or of all and the audit log if the name is empty.
  sql::SqlResult<void> Compare(sql::Connection& db, const std::string& workspace,
                               VerifyReport& report) const;

  int64_t checkpoints() const { return checkpoints_; }

 private:
  struct Head {
    int64_t sequence = 0;
    int64_t checkpoint = 0;
    std::array<char, 32> head{};
  };

  // The entries of the ledger, the events of payments, or billing's audit log, which is of no
  // workspace.
  enum class Log : uint8_t { kEntries, kPayments, kAudit };
  sql::SqlResult<void> CompareOne(sql::Connection& db, const std::string& workspace, Log log,
                                  const std::vector<Head>& heads, Findings findings) const;

  // Compares the states of archived months.
  sql::SqlResult<void> CompareArchive(sql::Connection& db, const std::string& workspace,
                                      const std::vector<Head>& states, VerifyReport& report) const;

  int64_t checkpoints_ = 0;
  std::map<std::string, std::vector<Head>> heads_;  // by chain, in file order
};

}  // namespace tollgate::billing
