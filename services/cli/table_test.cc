#include "services/cli/table.h"

#include <gtest/gtest.h>

#include "services/cli/expiry.h"

namespace tollgate::cli {
namespace {

TEST(Table, ListsAlignForPeopleAndAreJsonForPrograms) {
  Table table({{"id", "ID"}, {"usd", "USD"}});
  table.Add({Text("a"), Usd(12'500'000'000)});
  table.Add({Text("é\"x"), Usd(1)});
  EXPECT_EQ(table.ListAsText("none"), "ID            USD\na          $12.50\né\"x  $0.000000001\n");
  EXPECT_EQ(
      table.ListAsJson("rows"),
      "{\"rows\":[{\"id\":\"a\",\"usd\":\"12.5\"},{\"id\":\"é\\\"x\",\"usd\":\"0.000000001\"}]}\n");
}

TEST(Table, EmptyListSaysWhatToDoAndIsAnEmptyJsonList) {
  Table table({{"id", "ID"}});
  EXPECT_EQ(table.ListAsText("Nothing."), "Nothing.\n");
  EXPECT_EQ(table.ListAsJson("rows"), "{\"rows\":[]}\n");
}

TEST(Table, RecordsShowAbsentTimesAndLists) {
  Table table({{"at", "At"}, {"models", "Models"}, {"limit", "Limit"}, {"ok", "Right"}});
  table.Add({Time(0, "never"), List({}, "all"), Limit(0), Bool(true)});
  EXPECT_EQ(table.RecordAsText(), "At      never\nModels  all\nLimit   -\nRight   yes\n");
  EXPECT_EQ(table.RecordAsJson(), "{\"at\":null,\"models\":[],\"limit\":null,\"ok\":true}\n");
}

TEST(Cells, MoneyKeepsEveryDigitAndItsSign) {
  EXPECT_EQ(Usd(0).shown, "$0.00");
  EXPECT_EQ(Usd(-5'100'000'000).shown, "-$5.10");
  EXPECT_EQ(Usd(-5'100'000'000).json, "\"-5.1\"");
  EXPECT_EQ(Usd(5'000'000'000).shown, "$5.00");
  EXPECT_EQ(Usd(123'456'789).shown, "$0.123456789");
}

TEST(Cells, NamesCannotSteerTheTerminal) { EXPECT_EQ(Text("a\x1b[31m\n").shown, "a?[31m?"); }

TEST(Expiry, SpansDatesAndMoments) {
  constexpr int64_t kNow = 1'795'233'300'000'000;  // 2026-11-21T03:55:00Z
  EXPECT_EQ(ParseExpiry("never", kNow), 0);
  EXPECT_EQ(ParseExpiry("30d", kNow), kNow + int64_t{30} * 86'400'000'000);
  EXPECT_EQ(ParseExpiry("12h", kNow), kNow + int64_t{12} * 3'600'000'000);
  EXPECT_EQ(ParseExpiry("45m", kNow), kNow + int64_t{45} * 60'000'000);
  EXPECT_EQ(ParseExpiry("2026-11-22", kNow), 1'795'305'600'000'000);
  EXPECT_EQ(ParseExpiry("2026-11-21T03:55:01Z", kNow), kNow + 1'000'000);
}

TEST(Expiry, RefusesThePastAndWhatIsNoTime) {
  constexpr int64_t kNow = 1'795'233'300'000'000;
  for (const char* text : {"", "30", "-3d", "0d", "3y", "d", "2020-01-01", "2027-02-30", "2027-1-1",
                           "2027-01-01T25:00:00Z", "2027-01-01T10:00:00", "2027-01-01T10:00:00Zx",
                           "99999999999999999d", "2026-11-21T03:55:00Z"}) {
    EXPECT_EQ(ParseExpiry(text, kNow), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tollgate::cli
