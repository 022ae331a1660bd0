#include "common/http/connection_slots.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tollgate::http {
namespace {

using Outcome = ConnectionSlots::Outcome;

class ConnectionSlotsTest : public ::testing::Test {
 protected:
  Outcome Take(const std::string& address, bool exempt = false, bool queue = false) {
    ConnectionSlots::Slot slot;
    const Outcome outcome = slots_.Take(AddressSubject::FromText(address), exempt, queue, &slot);
    EXPECT_EQ(slot.taken(), outcome == Outcome::kTaken);
    if (slot.taken()) held_.push_back(std::move(slot));
    return outcome;
  }

  ConnectionSlots slots_{5, 2};
  std::vector<ConnectionSlots::Slot> held_;
};

TEST_F(ConnectionSlotsTest, ASubjectHasAtMostItsShare) {
  EXPECT_EQ(Take("10.0.0.1"), Outcome::kTaken);
  EXPECT_EQ(Take("10.0.0.1"), Outcome::kTaken);
  EXPECT_EQ(Take("10.0.0.1"), Outcome::kSubjectFull);
  EXPECT_EQ(Take("10.0.0.2"), Outcome::kTaken);
  EXPECT_EQ(held_[0].of_subject(), 2);
  EXPECT_EQ(held_[2].of_subject(), 1);
  held_.erase(held_.begin());
  EXPECT_EQ(held_[0].of_subject(), 1);
  EXPECT_EQ(Take("10.0.0.1"), Outcome::kTaken);
}

TEST_F(ConnectionSlotsTest, AnIpv6NetworkIsOneSubject) {
  EXPECT_EQ(Take("2001:db8:1:2::1"), Outcome::kTaken);
  EXPECT_EQ(Take("2001:db8:1:2:ffff::9"), Outcome::kTaken);
  EXPECT_EQ(Take("2001:db8:1:2::3"), Outcome::kSubjectFull);
  EXPECT_EQ(Take("2001:db8:1:3::1"), Outcome::kTaken);
}

TEST_F(ConnectionSlotsTest, ExemptAddressesMayTakeAll) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Take("10.0.0.1", true), Outcome::kTaken);
  EXPECT_EQ(Take("10.0.0.1", true), Outcome::kFull);
  EXPECT_EQ(Take("10.0.0.2"), Outcome::kFull);
  EXPECT_EQ(slots_.taken(), 5);
}

TEST_F(ConnectionSlotsTest, AFullShareIsNamedBeforeAFullServer) {
  for (const char* address : {"10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.3"}) {
    EXPECT_EQ(Take(address), Outcome::kTaken);
  }
  EXPECT_EQ(Take("10.0.0.1"), Outcome::kSubjectFull);
  EXPECT_EQ(Take("10.0.0.4"), Outcome::kFull);
  held_.clear();
  EXPECT_EQ(slots_.taken(), 0);
  EXPECT_EQ(Take("10.0.0.4"), Outcome::kTaken);
}

TEST_F(ConnectionSlotsTest, WhileOthersWaitThereIsNoPlace) {
  EXPECT_EQ(Take("10.0.0.1", false, true), Outcome::kFull);
  EXPECT_EQ(Take("10.0.0.1"), Outcome::kTaken);
  EXPECT_EQ(Take("10.0.0.1"), Outcome::kTaken);
  EXPECT_EQ(Take("10.0.0.1", false, true), Outcome::kSubjectFull)
      << "kSubjectFull takes precedence over kFull";
}

TEST_F(ConnectionSlotsTest, AMovedSlotIsReturnedOnce) {
  ConnectionSlots::Slot a;
  EXPECT_EQ(slots_.Take({}, false, false, &a), Outcome::kTaken);
  ConnectionSlots::Slot b(std::move(a));
  a = std::move(b);
  EXPECT_EQ(slots_.taken(), 1);
  a.Release();
  a.Release();
  EXPECT_EQ(slots_.taken(), 0);
}

}  // namespace
}  // namespace tollgate::http
