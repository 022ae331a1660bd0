// See ADR 0013.
#include "gateway/worker/live_filter.h"

#include <gtest/gtest.h>

#include "common/keys/key_format.h"

namespace tollgate::gateway {
namespace {

const std::string kTagKey(32, 't');

auth::v1::WatchKeysResponse Piece(const KeyFilter& filter, size_t offset, size_t count) {
  auth::v1::WatchKeysResponse message;
  auth::v1::KeyFilterPiece& piece = *message.mutable_filter_piece();
  piece.set_seed(filter.shape().seed);
  piece.set_bytes(filter.shape().bytes);
  piece.set_hashes(static_cast<uint32_t>(filter.shape().hashes));
  piece.set_offset(offset);
  piece.set_data(filter.Read(offset, count));
  piece.set_last(offset + count >= filter.shape().bytes);
  piece.set_tag_key(kTagKey);
  return message;
}
auth::v1::WatchKeysResponse ChangeOf(const MadeKey& key, bool is_tagged) {
  auth::v1::WatchKeysResponse message;
  auth::v1::KeyChange& change = *message.add_changes();
  change.mutable_key()->set_key_id(key.key_id);
  if (is_tagged) change.set_filter_tag(KeyTag(kTagKey, KeyDigest(key.text)));
  return message;
}
bool Has(const LiveFilterReceiver& receiver, const MadeKey& key) {
  return receiver.current()->MayContain(KeyDigest(key.text), key.key_id);
}

class LiveFilterTest : public ::testing::Test {
 protected:
  LiveFilterTest() { filter->Add(KeyTag(kTagKey, KeyDigest(live.text))); }

  const MadeKey live = MakeKey("acme");
  const MadeKey other = MakeKey("acme");
  const std::shared_ptr<KeyFilter> filter = KeyFilter::Make(KeyFilter::ShapeFor(100, 7));
  LiveFilterReceiver receiver;
};

TEST_F(LiveFilterTest, IsUsedWhenItsLastPieceHasCome) {
  const size_t half = filter->shape().bytes / 16 * 8;
  EXPECT_FALSE(receiver.Apply(Piece(*filter, 0, half)));
  EXPECT_EQ(receiver.current(), nullptr);
  EXPECT_TRUE(receiver.Apply(Piece(*filter, half, filter->shape().bytes)));
  EXPECT_TRUE(Has(receiver, live));
  EXPECT_FALSE(Has(receiver, other));
}

TEST_F(LiveFilterTest, AKnownPublicIdDoesNotHelp) {
  receiver.Apply(Piece(*filter, 0, filter->shape().bytes));
  EXPECT_FALSE(receiver.current()->MayContain(KeyDigest(other.text), live.key_id));
}

TEST_F(LiveFilterTest, HasEveryKeyThatChangesFromItsFirstPieceOn) {
  const size_t half = filter->shape().bytes / 16 * 8;
  receiver.Apply(Piece(*filter, 0, half));
  receiver.Apply(ChangeOf(other, true));
  receiver.Apply(Piece(*filter, half, filter->shape().bytes));
  EXPECT_TRUE(Has(receiver, other));
  const MadeKey later = MakeKey("acme");
  EXPECT_FALSE(Has(receiver, later));
  receiver.Apply(ChangeOf(later, true));
  EXPECT_TRUE(Has(receiver, later));
}

TEST_F(LiveFilterTest, KeysWithoutATagPassByTheirIdAndThenEveryLegacyKeyPasses) {
  receiver.Apply(Piece(*filter, 0, filter->shape().bytes));
  const std::string legacy = KeyDigest("old-0123456789012345678901234567890");
  EXPECT_FALSE(receiver.current()->MayContain(legacy, ""));
  receiver.Apply(ChangeOf(other, false));
  EXPECT_TRUE(Has(receiver, other));
  EXPECT_TRUE(receiver.current()->MayContain(legacy, ""));
  EXPECT_FALSE(Has(receiver, MakeKey("acme")));
  // Auth may set the flag in the first piece.
  auth::v1::WatchKeysResponse untagged = Piece(*filter, 0, filter->shape().bytes);
  untagged.mutable_filter_piece()->set_has_untagged(true);
  LiveFilterReceiver second;
  EXPECT_TRUE(second.Apply(untagged));
  EXPECT_TRUE(second.current()->MayContain(legacy, ""));
}

TEST_F(LiveFilterTest, AResetTakesItAway) {
  receiver.Apply(Piece(*filter, 0, filter->shape().bytes));
  auth::v1::WatchKeysResponse reset;
  reset.set_reset(true);
  EXPECT_TRUE(receiver.Apply(reset));
  EXPECT_EQ(receiver.current(), nullptr);
}

TEST_F(LiveFilterTest, TheOldOneIsUsedWhileANewOneArrives) {
  receiver.Apply(Piece(*filter, 0, filter->shape().bytes));
  const auto newer = KeyFilter::Make(KeyFilter::ShapeFor(200, 8));
  receiver.Apply(Piece(*newer, 0, 64));
  EXPECT_TRUE(Has(receiver, live));
  receiver.Apply(ChangeOf(other, true));
  EXPECT_TRUE(Has(receiver, other));
  EXPECT_TRUE(receiver.Apply(Piece(*newer, 64, newer->shape().bytes)));
  EXPECT_FALSE(Has(receiver, live)) << "revoked meanwhile";
  EXPECT_TRUE(Has(receiver, other));
}

// A filter with a gap would refuse keys that exist.
TEST_F(LiveFilterTest, AnIncompleteOneIsNeverUsed) {
  const size_t bytes = filter->shape().bytes;
  EXPECT_FALSE(receiver.Apply(Piece(*filter, 64, bytes)));
  EXPECT_FALSE(receiver.Apply(Piece(*filter, 0, 64)));
  EXPECT_FALSE(receiver.Apply(Piece(*filter, 128, bytes)));  // bytes 64 to 128 are missing
  EXPECT_EQ(receiver.current(), nullptr);
  // After the stream broke off, the next one starts from the beginning.
  EXPECT_FALSE(receiver.Apply(Piece(*filter, 0, 64)));
  EXPECT_TRUE(receiver.Apply(Piece(*filter, 0, bytes)));
  EXPECT_TRUE(Has(receiver, live));
  auth::v1::WatchKeysResponse huge = Piece(*filter, 0, 64);
  huge.mutable_filter_piece()->set_bytes(uint64_t{1} << 60);
  EXPECT_FALSE(receiver.Apply(huge));
  EXPECT_TRUE(Has(receiver, live)) << "the one in use stays";
}

}  // namespace
}  // namespace tollgate::gateway
