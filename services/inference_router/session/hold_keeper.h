// Keeps one request's hold ahead of its tokens: asks the ledger for more in the background, reports
// progress, and holds the stream back only when the money is really at its end. Lives on one loop.
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
    // Deadline of one question to the ledger.
    int64_t ask_ms = 2000;
  };
  // slot may be null (a refused request).
  HoldKeeper(Loop& loop, MeteringClient& metering, Clock& clock, JournalSlot* slot,
             Options options);

  Spending& spending() { return spending_; }

  // An operation on this hold with the next number.
  billing::v1::MeterOp NewOp();
  // Starts to ask for more when it is time. Never waits.
  void AskAhead(const common::v1::Usage& usage);
  // Whether the hold pays for this many output tokens, after asking for more if it must.
  Task<bool> Ensure(int64_t output_tokens, const common::v1::Usage& usage);
  // Sends a progress report. Never waits.
  void Heartbeat(const common::v1::Usage& usage);
  // No operation leaves after this one; the slot is somebody else's.
  void Close() { slot_ = nullptr, closed_ = true; }

 private:
  static Task<void> Ask(std::shared_ptr<HoldKeeper> self, billing::v1::MeterOp op);
  static Task<void> Report(std::shared_ptr<HoldKeeper> self, billing::v1::MeterOp op);
  billing::v1::MeterOp ExtendOp(int64_t total, const common::v1::Usage& usage);

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
