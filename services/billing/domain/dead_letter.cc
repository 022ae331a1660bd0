#include "services/billing/domain/dead_letter.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "common/base/clock.h"
#include "services/billing/domain/batch.h"

namespace tollgate::billing {
namespace {

// The title, eleven numbers and the engine's name, separated by spaces.
constexpr std::string_view kTitle = "settle1";
// Eleven numbers, the engine's name and the fields of the admission. Texts have their lengths in
// bytes before them: " 3:key".
constexpr std::string_view kTitleWithAdmission = "settle2";
// The ledger refuses longer engine names. The dead letter keeps the beginning of such a name.
constexpr size_t kMaxEngineBytes = 1024;

void Append(std::string& text, std::initializer_list<int64_t> numbers) {
  for (const int64_t number : numbers) text += " " + std::to_string(number);
}
void Append(std::string& text, std::string_view part) {
  text += " " + std::to_string(part.size()) + ":";
  text += part;
}

// Reads what Append has written. A part that is missing ends the reading.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  template <typename T>
  void Number(T& into) {
    into = static_cast<T>(Number());
  }
  void Text(std::string& into) {
    const int64_t bytes = Number();
    const auto size = static_cast<size_t>(bytes);
    ok_ = ok_ && bytes >= 0 && text_.starts_with(':') && size < text_.size();
    if (!ok_) return;
    into = text_.substr(1, size);
    text_.remove_prefix(size + 1);
  }
  // Everything that follows one space.
  void Rest(std::string& into) {
    ok_ = ok_ && text_.starts_with(' ');
    if (ok_) into = text_.substr(1);
    text_ = {};
  }
  bool ok() const { return ok_; }
  bool at_end() const { return text_.empty(); }

 private:
  int64_t Number() {
    int64_t number = 0;
    ok_ = ok_ && text_.starts_with(' ');
    if (!ok_) return 0;
    const auto [end, error] =
        std::from_chars(text_.data() + 1, text_.data() + text_.size(), number);
    ok_ = error == std::errc();
    if (ok_) text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return number;
  }

  std::string_view text_;
  bool ok_ = true;
};

// One per line: ids of keys have no line break.
std::string JoinLines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}
std::vector<std::string> SplitLines(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string EncodeAdmission(const Admission& admission) {
  const Authorize& authorize = admission.authorize;
  std::string text;
  Append(text,
         {authorize.rates.input_pico_usd, authorize.rates.output_pico_usd, authorize.price_version,
          authorize.prompt_bound, authorize.output_bound, static_cast<int64_t>(authorize.surface),
          authorize.streamed, authorize.attempt, admission.month, admission.authorized_nano_usd});
  for (const std::string& part : {authorize.key_id, authorize.model, authorize.client_request_id,
                                  admission.lessee, JoinLines(authorize.quota_keys)}) {
    Append(text, part);
  }
  return text;
}

Admission DecodeAdmission(Reader& reader, const Id& request_id, const std::string& workspace) {
  Admission admission;
  Authorize& authorize = admission.authorize;
  authorize.request_id = request_id;
  authorize.workspace = workspace;
  reader.Number(authorize.rates.input_pico_usd);
  reader.Number(authorize.rates.output_pico_usd);
  reader.Number(authorize.price_version);
  reader.Number(authorize.prompt_bound);
  reader.Number(authorize.output_bound);
  reader.Number(authorize.surface);
  reader.Number(authorize.streamed);
  reader.Number(authorize.attempt);
  reader.Number(admission.month);
  reader.Number(admission.authorized_nano_usd);
  std::string quota_keys;
  for (std::string* part : {&authorize.key_id, &authorize.model, &authorize.client_request_id,
                            &admission.lessee, &quota_keys}) {
    reader.Text(*part);
  }
  authorize.quota_keys = SplitLines(quota_keys);
  return admission;
}

}  // namespace

std::string EncodeSettle(const Settle& settle) {
  const bool admitted = settle.admission != nullptr && IsValid(*settle.admission);
  std::string text(admitted ? kTitleWithAdmission : kTitle);
  Append(text,
         {settle.sequence, settle.usage.prompt, settle.usage.cached, settle.usage.cache_write,
          settle.usage.completion, settle.usage.reasoning, static_cast<int64_t>(settle.outcome),
          settle.cut_by_credit, settle.estimated, settle.first_token_us, settle.attempt});
  const std::string engine = settle.engine.substr(0, kMaxEngineBytes);
  if (!admitted) return text + " " + engine;
  Append(text, engine);
  return text + EncodeAdmission(*settle.admission);
}

std::optional<Settle> DecodeSettle(std::string_view text, const Id& request_id,
                                   const std::string& workspace) {
  const bool admitted = text.starts_with(kTitleWithAdmission);
  if (!admitted && !text.starts_with(kTitle)) return std::nullopt;
  Reader reader(text.substr(kTitle.size()));
  Settle settle;
  settle.request_id = request_id;
  settle.workspace = workspace;
  reader.Number(settle.sequence);
  reader.Number(settle.usage.prompt);
  reader.Number(settle.usage.cached);
  reader.Number(settle.usage.cache_write);
  reader.Number(settle.usage.completion);
  reader.Number(settle.usage.reasoning);
  reader.Number(settle.outcome);
  reader.Number(settle.cut_by_credit);
  reader.Number(settle.estimated);
  reader.Number(settle.first_token_us);
  reader.Number(settle.attempt);
  if (admitted) {
    reader.Text(settle.engine);
    settle.admission =
        std::make_shared<const Admission>(DecodeAdmission(reader, request_id, workspace));
  } else {
    reader.Rest(settle.engine);
  }
  if (!reader.ok() || !reader.at_end()) return std::nullopt;
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

std::string AdjustmentIdOf(const Id& request_id) { return "dead-letter-" + request_id.ToHex(); }

Reply Batch::Retry(const ResolveDeadLetter& resolve, DeadLetter& letter) {
  auto settle = DecodeSettle(letter.operation, letter.id, letter.workspace);
  if (!settle) return Refuse(Deny::kInvalid);
  // Only the rows of the admission that the operation names are loaded.
  settle->admission = resolve.letter_admission;
  if (EncodeSettle(*settle) != letter.operation || !IsValid(*settle)) return Refuse(Deny::kInvalid);
  // Asked for by another letter of the request. A settle would not know of it, and charge again.
  const std::string adjustment = CommandKey(letter.workspace, AdjustmentIdOf(letter.id));
  if (state_.commands.contains(adjustment)) return Refuse(Deny::kIdReuse);
  Reply reply = Admitted(*settle);
  if (reply.ok) {
    letter.state = DeadLetterState::kRetried;
    return reply;
  }
  const int64_t owed_nano_usd = OwedNanoUsd(*settle, letter.archived_month);
  if (owed_nano_usd <= 0 || wallet_ == nullptr) return reply;
  if (!resolve.proved) return Refuse(Deny::kSamePerson);
  Correct debit;
  debit.workspace = letter.workspace;
  debit.command_id = AdjustmentIdOf(letter.id);
  debit.kind = CommandKind::kDebitAdjustment;
  debit.amount_nano_usd = owed_nano_usd;
  debit.granted = wallet_->granted_nano_usd >= owed_nano_usd;  // burns first, as in a charge
  debit.actor = resolve.actor;
  debit.reason = resolve.reason;
  debit.reference = "request " + letter.id.ToHex();
  debit.address = resolve.address;
  debit.second_person = true;
  reply = Execute(debit);
  if (reply.ok) letter.state = DeadLetterState::kAdjusted;
  return reply;
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
  const bool retry = resolve.to == DeadLetterState::kRetried;
  Reply reply;
  reply.ok = true;
  if (letter.state == resolve.to) return reply;
  if (retry && letter.state == DeadLetterState::kAdjusted) return reply;
  if (letter.state != DeadLetterState::kOpen) return Refuse(Deny::kClosed);
  if (retry) {
    reply = Retry(resolve, letter);
    if (!reply.ok) return reply;
  } else {
    letter.state = DeadLetterState::kWrittenOff;
  }
  std::string memo = retry ? "retried" : "written off";
  if (letter.state == DeadLetterState::kAdjusted) memo = "asked as an adjustment";
  memo += " by " + resolve.actor + ": " + resolve.reason;
  // Without a wallet the workspace has no chain; only the row records who resolved it.
  if (wallet_ != nullptr) {
    Post(EntryKind::kDeadLetterResolved, Account::kControl, Account::kControl, 0, UtcMonth(now_us_),
         letter.id.ToBytes(), memo);
  }
  letter.resolved_us = at_us_;
  letter.actor = resolve.actor;
  letter.note = resolve.reason;
  out_.resolved_dead_letters.push_back(found->first);
  Audit(resolve, retry ? "dead_letter.retry" : "dead_letter.write_off",
        letter.id.ToHex() + "." + std::to_string(letter.number), resolve.reason, resolve.call_id);
  return reply;
}

}  // namespace tollgate::billing
