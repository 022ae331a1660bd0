// What payments need of the ledger. Calls block. Every posting has an id of its own: repeating it
// changes nothing.
#pragma once

#include <string>
#include <vector>

#include "common/error/error.h"
#include "services/billing/commit/ledger_service.h"

namespace tollgate::billing::payments {

class LedgerPort {
 public:
  virtual ~LedgerPort() = default;
  // An error: the outcome is unknown, repeat it.
  virtual Result<Reply> Submit(Operation operation) = 0;
  virtual Result<Balance> ReadBalance(const std::string& workspace) = 0;
  // Whether the workspace has a wallet.
  virtual Result<bool> HasWallet(const std::string& workspace) = 0;
  // The posted commands that came from payments: credit, refunds, and those that failed.
  struct Posting {
    std::string command_id;
    bool refund = false;
    int64_t amount_nano_usd = 0;  // of a refund that failed: negative
    std::string payment;          // refunds only: our id
  };
  virtual Result<std::vector<Posting>> ReadPostings(const std::string& workspace) = 0;
};

// The ledger of this process, which must outlive the port.
class LedgerServicePort : public LedgerPort {
 public:
  explicit LedgerServicePort(LedgerService& ledger) : ledger_(ledger) {}
  Result<Reply> Submit(Operation operation) override;
  Result<Balance> ReadBalance(const std::string& workspace) override;
  Result<bool> HasWallet(const std::string& workspace) override;
  Result<std::vector<Posting>> ReadPostings(const std::string& workspace) override;

 private:
  LedgerService& ledger_;
};

}  // namespace tollgate::billing::payments
