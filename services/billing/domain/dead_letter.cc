#include "services/billing/domain/dead_letter.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "common/base/clock.h"
#include "services/billing/domain/batch.h"

namespace tollgate::billing {
namespace {

constexpr std::string_view kTitle = "settle1";
// The ledger refuses longer engine names. The dead letter keeps the beginning of such a name.
constexpr size_t kMaxEngineBytes = 1024;
constexpr size_t kNumbers = 11;

}  // namespace

// The title, eleven numbers and the engine's name, separated by spaces.
std::string EncodeSettle(const Settle& settle) {
  const std::array<int64_t, kNumbers> numbers = {settle.sequence,
                                                 settle.usage.prompt,
                                                 settle.usage.cached,
                                                 settle.usage.cache_write,
                                                 settle.usage.completion,
                                                 settle.usage.reasoning,
                                                 static_cast<int64_t>(settle.outcome),
                                                 settle.cut_by_credit,
                                                 settle.estimated,
                                                 settle.first_token_us,
                                                 settle.attempt};
  std::string text(kTitle);
  for (const int64_t number : numbers) text += " " + std::to_string(number);
  return text + " " + settle.engine.substr(0, kMaxEngineBytes);
}

std::optional<Settle> DecodeSettle(std::string_view text, const Id& request_id,
                                   const std::string& workspace) {
  if (!text.starts_with(kTitle)) return std::nullopt;
  text.remove_prefix(kTitle.size());
  std::array<int64_t, kNumbers> numbers{};
  for (int64_t& number : numbers) {
    if (!text.starts_with(' ')) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  if (!text.starts_with(' ')) return std::nullopt;
  Settle settle;
  settle.request_id = request_id;
  settle.workspace = workspace;
  settle.sequence = numbers[0];
  settle.usage = {numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]};
  settle.outcome = static_cast<Outcome>(numbers[6]);
  settle.cut_by_credit = numbers[7] != 0;
  settle.estimated = numbers[8] != 0;
  settle.first_token_us = numbers[9];
  settle.attempt = static_cast<int32_t>(numbers[10]);
  settle.engine = std::string(text.substr(1));
  return settle;
}

std::optional<DeadLetter> DeadLetterOf(const Settle& settle, const Reply& refused, const Hold* hold,
                                       int64_t at_us) {
  if (IsFree(settle.outcome, settle.usage)) return std::nullopt;
  if (hold != nullptr && hold->workspace == settle.workspace) {
    if (settle.attempt < hold->attempt) return std::nullopt;
    if (refused.denied_by == Deny::kClosed && hold->free()) return std::nullopt;
  }
  DeadLetter letter;
  letter.id = settle.request_id;
  letter.workspace = settle.workspace;
  letter.at_us = at_us;
  letter.reason = refused.denied_by;
  letter.operation = EncodeSettle(settle);
  return letter;
}

Reply Batch::Execute(const ResolveDeadLetter& resolve) {
  const bool valid =
      !resolve.actor.empty() && resolve.actor.size() <= 128 && !resolve.reason.empty() &&
      resolve.reason.size() <= 512 &&
      (resolve.to == DeadLetterState::kRetried || resolve.to == DeadLetterState::kWrittenOff);
  if (!valid) return Refuse(Deny::kInvalid);
  const auto found = state_.dead_letters.find(DeadLetterKey(resolve.request_id, resolve.number));
  if (found == state_.dead_letters.end() || found->second.workspace != resolve.workspace) {
    return Refuse(Deny::kUnknownDeadLetter);
  }
  DeadLetter& letter = found->second;
  Reply reply;
  reply.ok = true;
  if (letter.state == resolve.to) return reply;
  if (letter.state != DeadLetterState::kOpen) return Refuse(Deny::kClosed);
  const bool retry = resolve.to == DeadLetterState::kRetried;
  if (retry) {
    const auto settle = DecodeSettle(letter.operation, letter.id, letter.workspace);
    reply = settle ? Execute(*settle) : Refuse(Deny::kInvalid);
    if (!reply.ok) return reply;
  }
  const std::string memo = std::string(retry ? "retried" : "written off") + " by " + resolve.actor +
                           ": " + resolve.reason;
  // Without a wallet the workspace has no chain; only the row records who resolved it.
  if (wallet_ != nullptr) {
    Post(EntryKind::kDeadLetterResolved, Account::kControl, Account::kControl, 0, UtcMonth(now_us_),
         letter.id.ToBytes(), memo);
  }
  letter.state = resolve.to;
  letter.resolved_us = at_us_;
  letter.actor = resolve.actor;
  letter.note = resolve.reason;
  out_.resolved_dead_letters.push_back(found->first);
  Audit(resolve, retry ? "dead_letter.retry" : "dead_letter.write_off",
        letter.id.ToHex() + "." + std::to_string(letter.number), resolve.reason, resolve.call_id);
  return reply;
}

}  // namespace tollgate::billing
