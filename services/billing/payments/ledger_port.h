// What payments need from the ledger. Calls block. Every posting has its own id, so repeating it
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
  // After an error the outcome is unknown: repeat the operation.
  virtual Result<Reply> Submit(Operation operation) = 0;
  virtual Result<Balance> ReadBalance(const std::string& workspace) = 0;
  // Whether the workspace has a wallet.
  virtual Result<bool> HasWallet(const std::string& workspace) = 0;
  // A posted command of payments: credit, refund, or return of a failed refund.
  struct Posting {
    std::string command_id;
    bool refund = false;
    int64_t amount_nano_usd = 0;  // negative for a failed refund
    std::string payment;          // refunds only: our id
  };
  virtual Result<std::vector<Posting>> ReadPostings(const std::string& workspace) = 0;
};

// Port to the ledger of this process, which must outlive the port.
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
