// Seeded random histories of ledger operations for tests: duplicates, reordering, delays, reused
// ids, month boundaries, clock steps. A seed gives the same history on every machine.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "common/base/clock.h"
#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {

class History {
 public:
  // with_leases: the history also takes leases and admits requests from them.
  explicit History(uint64_t seed, bool with_leases = false)
      : random_(seed),
        with_leases_(with_leases),
        now_us_(UtcMonthStartUs(202512) - static_cast<int64_t>(Below(200'000'000))) {}

  // The ledger's clock: advances, does not move, jumps across month boundaries or the expiry of
  // holds, steps back.
  int64_t NextTime() {
    switch (Below(40)) {
      case 0:
        now_us_ += 61'000'000;
        break;
      case 1:
        now_us_ += static_cast<int64_t>(Below(26)) * 3'600'000'000;
        break;
      case 2:
        now_us_ = NextMonthUs() - 1'000'000 + static_cast<int64_t>(Below(2'000'000));
        break;
      case 3:
        now_us_ -= static_cast<int64_t>(Below(5'000'000));
        break;
      case 4:
      case 5:
        break;
      default:
        now_us_ += static_cast<int64_t>(Below(3'000'000));
    }
    return now_us_;
  }

  Operation NextOperation() {
    Operation operation = Make();
    sent_.push_back(operation);
    if (sent_.size() > 400) sent_.erase(sent_.begin(), sent_.begin() + 200);
    return operation;
  }

  uint64_t Below(uint64_t bound) { return random_() % bound; }

 private:
  int64_t NextMonthUs() const {
    const int32_t month = UtcMonth(now_us_);
    return UtcMonthStartUs(NextMonth(month));
  }
  std::string Workspace() { return "ws" + std::to_string(Below(3)); }

  Operation Make() {
    if (with_leases_ && Below(6) == 0) return OfLease();
    const uint64_t dice = Below(100);
    if (sent_.empty() || dice < 6) return NewCommand();
    if (dice < 30) return NewAuthorize();
    // Repeats an earlier operation: duplicate, late or out of order.
    if (dice < 42) return sent_[sent_.size() - 1 - Below(std::min<size_t>(sent_.size(), 60))];
    if (dice < 46) return Changed();
    if (dice < 50) return NextTry();
    return ForKnownHold();
  }

  Operation NewCommand() {
    const std::string id = "cmd" + std::to_string(Below(10) == 0 ? Below(50) : ++commands_);
    if (Below(3) > 0) {
      const int64_t amount = 1 + static_cast<int64_t>(Below(60'000));
      AddCredit op = MakeAddCredit(id, amount, Below(3) == 0);
      op.workspace = Workspace();
      return op;
    }
    if (Below(2) == 0) return NewCorrection(id);
    SetCap op = MakeSetCap(id, std::nullopt);
    if (Below(4) != 0) op.cap_nano_usd = static_cast<int64_t>(Below(90'000));
    op.workspace = Workspace();
    return op;
  }

  // Freezes are rare and short; otherwise nothing else would happen.
  Operation NewCorrection(const std::string& id) {
    static constexpr CommandKind kKinds[] = {
        CommandKind::kRefund,       CommandKind::kCreditAdjustment, CommandKind::kDebitAdjustment,
        CommandKind::kChargeback,   CommandKind::kChargebackWon,    CommandKind::kWriteOff,
        CommandKind::kRefundFailed, CommandKind::kFreeze,           CommandKind::kUnfreeze,
        CommandKind::kUnfreeze};
    if (!corrections_.empty() && Below(3) == 0) {
      const size_t back = Below(std::min<size_t>(corrections_.size(), 4));
      const Correct& asked = corrections_[corrections_.size() - 1 - back];
      const char* actor = Below(2) == 0 ? "ann" : "bob";
      return Decide{asked.workspace, asked.command_id, Below(2) == 0, actor, "test"};
    }
    Correct op;
    op.workspace = Workspace();
    op.command_id = id;
    op.kind = kKinds[Below(10)];
    const bool moves = op.kind != CommandKind::kFreeze && op.kind != CommandKind::kUnfreeze;
    op.amount_nano_usd = moves ? 1 + static_cast<int64_t>(Below(20'000)) : 0;
    op.granted = Below(3) == 0 && op.kind != CommandKind::kRefundFailed;
    op.actor = Below(2) == 0 ? "ann" : "bob";
    op.reason = "test";
    corrections_.push_back(op);
    return op;
  }

  Operation NewAuthorize() {
    static constexpr Rates kRates[] = {
        {1000, 2000}, {37, 41}, {0, 0}, {150'000, 600'000}, {999, 1001}};
    const int64_t age = Below(50) == 0 ? 7LL * 24 * 3'600'000'000 + 1'000'000 : 0;
    const Id id = TestId(++ids_, now_us_ - age);
    const int64_t prompt = Below(10) == 0 ? 0 : static_cast<int64_t>(Below(3000));
    const int64_t output = Below(10) == 0 ? 0 : static_cast<int64_t>(Below(9000));
    Authorize op = MakeAuthorize(id, prompt, output, Workspace());
    op.rates = kRates[Below(5)];
    op.price_version = static_cast<int64_t>(Below(3));
    op.streamed = Below(4) != 0;
    for (uint64_t more = Below(5) == 0 ? 1 + Below(3) : 0; more > 0; --more) {
      op.fallbacks.push_back({"fallback" + std::to_string(more), kRates[Below(5)],
                              static_cast<int64_t>(Below(3)), static_cast<int64_t>(Below(3000)),
                              static_cast<int64_t>(Below(9000))});
    }
    if (!op.fallbacks.empty() && Below(4) == 0) op.candidate = AnyCandidate(op);
    known_.push_back({id, op.workspace});
    if (known_.size() > 40) known_.erase(known_.begin());
    return op;
  }

  int32_t AnyCandidate(const Authorize& op) {
    return static_cast<int32_t>(Below(op.fallbacks.size() + 1));
  }

  // An earlier authorize with the next attempt number, perhaps with another model.
  Operation NextTry() {
    for (size_t i = 0; i < std::min<size_t>(sent_.size(), 60); ++i) {
      Operation operation = sent_[sent_.size() - 1 - i];
      auto* authorize = std::get_if<Authorize>(&operation);
      if (authorize == nullptr || Below(3) == 0) continue;
      ++authorize->attempt;
      authorize->candidate = AnyCandidate(*authorize);
      return operation;
    }
    return NewAuthorize();
  }

  // Any operation of a request on a hold that may be open, closed or unknown.
  Operation ForKnownHold() {
    if (known_.empty() || Below(60) == 0) known_.push_back({TestId(++ids_, now_us_), Workspace()});
    const auto& [id, workspace] = known_[Below(known_.size())];
    const auto tokens = [this](uint64_t bound) {
      return Below(8) == 0 ? 0 : static_cast<int64_t>(Below(bound));
    };
    const int64_t sequence = static_cast<int64_t>(Below(12));
    const int32_t attempt = Below(4) == 0 ? 1 : 0;
    switch (Below(7)) {
      case 0: {
        const int64_t total_nano_usd = static_cast<int64_t>(Below(40'000));
        const int64_t prompt = tokens(3000);
        return Extend{id,     workspace, sequence, {prompt, 0, 0, tokens(9000), 0}, total_nano_usd,
                      attempt};
      }
      case 1:
      case 2: {
        const int64_t prompt = tokens(3000);
        return Heartbeat{id, workspace, sequence, {prompt, 0, 0, tokens(9000), 0}, attempt};
      }
      case 3: {
        const int64_t prompt = tokens(3000);
        const int64_t completion = tokens(9000);
        Settle op =
            MakeSettle(id, prompt, completion, static_cast<Outcome>(1 + Below(5)), workspace);
        op.usage.cached = tokens(4000);
        op.cut_by_credit = Below(9) == 0;
        op.estimated = Below(9) == 0;
        op.attempt = attempt;
        return op;
      }
      case 4:
        return Void{id, workspace, "test", Below(2) == 0};
      default:
        return Expire{id, workspace};
    }
  }

  std::string Lessee() { return "loop-" + std::to_string(Below(3)); }

  // Takes, renews, gives back or ends a lease, or reports a request that was admitted from one.
  Operation OfLease() {
    const int32_t month = Below(12) == 0 ? UtcMonth(NextMonthUs()) : UtcMonth(now_us_);
    const uint64_t dice = Below(8);
    if (dice == 0) return ExpireLease{Workspace(), Lessee(), month};
    if (dice < 4) {
      const int64_t used = static_cast<int64_t>(Below(400));
      return TakeLease{Workspace(),
                       Lessee(),
                       Below(4) == 0 ? 0 : month,
                       used,
                       Below(5) == 0 ? 0 : static_cast<int64_t>(Below(3000)),
                       static_cast<int64_t>(Below(static_cast<uint64_t>(used) + 1))};
    }
    if (known_.empty() || Below(3) != 0) known_.push_back({TestId(++ids_, now_us_), Workspace()});
    const auto& [id, workspace] = known_.back();
    Admission admission;
    admission.authorize = MakeAuthorize(id, 100, 300, workspace);
    admission.authorize.attempt = Below(6) == 0 ? 1 : 0;
    admission.lessee = Lessee();
    admission.month = month;
    admission.authorized_nano_usd = static_cast<int64_t>(Below(800));
    auto shared = std::make_shared<const Admission>(std::move(admission));
    const int32_t attempt = shared->authorize.attempt;
    if (dice < 6) {
      Settle op =
          MakeSettle(id, 100, static_cast<int64_t>(Below(400)), Outcome::kCompleted, workspace);
      op.attempt = attempt;
      op.admission = std::move(shared);
      return op;
    }
    Heartbeat op{id, workspace, static_cast<int64_t>(Below(12)), {100, 0, 0, 10, 0}, attempt};
    op.admission = std::move(shared);
    return op;
  }

  // An earlier operation with another body, for another workspace, or malformed.
  Operation Changed() {
    Operation operation = sent_[sent_.size() - 1 - Below(std::min<size_t>(sent_.size(), 60))];
    const uint64_t change = Below(5);
    std::visit(
        [&](auto& op) {
          // Changes the workspace of commands only: a database looks up a request id in the shard
          // of its workspace.
          if constexpr (!requires { op.request_id; }) {
            if (change == 0) op.workspace = Workspace();
          }
          if constexpr (requires { op.usage; }) {
            if (change == 1) ++op.usage.completion;
            if (change == 3) op.usage.completion = -1;
          }
          if constexpr (requires { op.prompt_bound; }) {
            if (change == 2) ++op.prompt_bound;
          }
          if constexpr (requires { op.fallbacks; }) {
            if (change == 0) op.candidate = AnyCandidate(op) + (Below(8) == 0 ? 1 : 0);
            if (change == 3 && !op.fallbacks.empty()) ++op.fallbacks.back().rates.input_pico_usd;
          }
          if constexpr (requires { op.amount_nano_usd; }) {
            if (change == 4) ++op.amount_nano_usd;
          }
        },
        operation);
    return operation;
  }

  std::mt19937_64 random_;
  bool with_leases_;
  int64_t now_us_;
  int ids_ = 0;
  int commands_ = 0;
  std::vector<Operation> sent_;
  std::vector<Correct> corrections_;
  std::vector<std::pair<Id, std::string>> known_;  // recent requests and their workspaces
};

}  // namespace tollgate::billing
