// Keeps the hold of one request ahead of its tokens: extends it at the ledger in the background,
// and suspends the stream only if the hold does not pay for the next token. Also sends heartbeats.
// Lives on one loop; operations in flight keep it alive.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/clients/clients.h"
#include "common/runtime/notify.h"
#include "services/inference_router/domain/spending.h"
#include "services/inference_router/settlement/journal.h"

namespace tollgate::inference_router {

class HoldKeeper : public std::enable_shared_from_this<HoldKeeper> {
 public:
  struct Options {
    std::string request_id;
    std::string workspace_id;
    Spending::Options spending;
    // Deadline of one operation at the ledger.
    int64_t timeout_ms = 2000;
  };
  // slot may be null (a refused request).
  HoldKeeper(Loop& loop, MeteringClient& metering, Clock& clock, JournalSlot* slot,
             Options options);

  Spending& spending() { return spending_; }

  // A new operation on this hold, with the next sequence number.
  billing::v1::MeterOp NewOp();
  // Starts an extension in the background if less than half a slice is left.
  void ExtendAhead(const common::v1::Usage& usage);
  // Whether the hold pays for this many output tokens. Extends it first if necessary.
  Task<bool> Ensure(int64_t output_tokens, const common::v1::Usage& usage);
  // Reports progress to the ledger in the background.
  void Heartbeat(const common::v1::Usage& usage);
  // No extension or heartbeat is sent after this, and the slot is not touched.
  void Close() { slot_ = nullptr, closed_ = true; }

 private:
  static Task<void> SendExtension(std::shared_ptr<HoldKeeper> self, billing::v1::MeterOp op);
  static Task<void> SendHeartbeat(std::shared_ptr<HoldKeeper> self, billing::v1::MeterOp op);
  billing::v1::MeterOp NewExtendOp(int64_t total_nano_usd, const common::v1::Usage& usage);

  Loop& loop_;
  MeteringClient& metering_;
  Clock& clock_;
  JournalSlot* slot_;
  const Options options_;
  Spending spending_;
  Notify answered_;
  int64_t sequence_without_slot_ = 0;
  bool closed_ = false;
};

}  // namespace tollgate::inference_router
