// What payments need from the ledger. Calls block. Every posting has its own id, so repeating it
// changes nothing.
#pragma once

#include <optional>
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
  // A posted command that moves paid credit: a top-up, a refund, or the return of a failed refund.
  struct Posting {
    std::string workspace;
    std::string command_id;
    CommandKind kind = CommandKind::kAddCredit;
    int64_t amount_nano_usd = 0;  // negative for a failed refund
    std::string payment;          // refunds of a payment: our id
    std::string actor;
    std::string reason;
    int64_t at_us = 0;

    bool refund() const { return kind != CommandKind::kAddCredit; }
  };
  virtual Result<std::vector<Posting>> ReadPostings(const std::string& workspace) = 0;
  // Postings of all workspaces in [start, end).
  virtual Result<std::vector<Posting>> PostingsBetween(int64_t start_us, int64_t end_us) = 0;
  // The newest refund, chargeback or debit adjustment: what lowers a balance without spending.
  struct Lowering {
    CommandKind kind = CommandKind::kRefund;
    int64_t at_us = 0;  // when it was posted
  };
  virtual Result<std::optional<Lowering>> NewestLowering(const std::string& workspace) = 0;
  // The ledger's time: it does not follow a clock of this machine that jumps.
  virtual int64_t NowUs() = 0;
};

// Port to the ledger of this process, which must outlive the port.
class LedgerServicePort : public LedgerPort {
 public:
  explicit LedgerServicePort(LedgerService& ledger) : ledger_(ledger) {}
  Result<Reply> Submit(Operation operation) override;
  Result<Balance> ReadBalance(const std::string& workspace) override;
  Result<bool> HasWallet(const std::string& workspace) override;
  Result<std::vector<Posting>> ReadPostings(const std::string& workspace) override;
  Result<std::vector<Posting>> PostingsBetween(int64_t start_us, int64_t end_us) override;
  Result<std::optional<Lowering>> NewestLowering(const std::string& workspace) override;
  int64_t NowUs() override { return ledger_.NowUs(); }

 private:
  LedgerService& ledger_;
};

}  // namespace tollgate::billing::payments
