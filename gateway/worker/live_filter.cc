#include "gateway/worker/live_filter.h"

#include <utility>

#include "common/observability/log.h"

namespace tollgate::gateway {

bool LiveFilter::MayContain(std::string_view digest, std::string_view key_id) const {
  if (keys_->MayContain(KeyTag(tag_key_, digest))) return true;
  if (!has_untagged_.load(std::memory_order_relaxed)) return false;
  return key_id.empty() || keys_->MayContain(KeyIdElement(key_id));
}

void LiveFilter::Add(const auth::v1::KeyChange& change) {
  if (change.filter_tag() != 0) return keys_->Add(change.filter_tag());
  keys_->Add(KeyIdElement(change.key().key_id()));
  SetHasUntagged();
}

bool LiveFilterReceiver::Apply(const auth::v1::WatchKeysResponse& message) {
  bool changed = false;
  if (message.reset()) {
    changed = current_ != nullptr;
    current_.reset();
    next_.reset();
  }
  if (message.has_filter_piece()) changed = AddPiece(message.filter_piece()) || changed;
  for (const auth::v1::KeyChange& change : message.changes()) {
    if (current_) current_->Add(change);
    if (next_) next_->Add(change);
  }
  return changed;
}

bool LiveFilterReceiver::AddPiece(const auth::v1::KeyFilterPiece& piece) {
  if (piece.offset() == 0) {
    received_ = 0;
    auto keys = KeyFilter::Make(
        {.seed = piece.seed(), .bytes = piece.bytes(), .hashes = static_cast<int>(piece.hashes())});
    next_ = keys ? std::make_shared<LiveFilter>(std::move(keys), piece.tag_key()) : nullptr;
  }
  if (!next_ || next_->keys().shape().seed != piece.seed() || piece.offset() != received_ ||
      !next_->keys().Merge(piece.offset(), piece.data())) {
    log::Warn("filter of live keys refused", {{"offset", static_cast<int64_t>(piece.offset())},
                                              {"bytes", static_cast<int64_t>(piece.bytes())}});
    next_.reset();
    return false;
  }
  received_ += piece.data().size();
  if (piece.has_untagged()) next_->SetHasUntagged();
  if (!piece.last() || received_ != next_->keys().shape().bytes) return false;
  current_ = std::exchange(next_, nullptr);
  return true;
}

}  // namespace tollgate::gateway
