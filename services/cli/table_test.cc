#include "services/cli/table.h"

#include <gtest/gtest.h>

namespace tollgate::cli {
namespace {

TEST(Table, ListsAsTextAndAsJson) {
  Table table({{"id", "ID"}, {"usd", "USD"}});
  table.Add({Text("a"), Usd(12'500'000'000)});
  table.Add({Text("é\"x"), Usd(1)});
  EXPECT_EQ(table.ListAsText("none"), "ID            USD\na          $12.50\né\"x  $0.000000001\n");
  EXPECT_EQ(
      table.ListAsJson("rows"),
      "{\"rows\":[{\"id\":\"a\",\"usd\":\"12.5\"},{\"id\":\"é\\\"x\",\"usd\":\"0.000000001\"}]}\n");
}

TEST(Table, AnEmptyListIsAHintOrAnEmptyArray) {
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

TEST(Cells, AmountsKeepEveryDigitAndTheSign) {
  EXPECT_EQ(Usd(0).shown, "$0.00");
  EXPECT_EQ(Usd(-5'100'000'000).shown, "-$5.10");
  EXPECT_EQ(Usd(-5'100'000'000).json, "\"-5.1\"");
  EXPECT_EQ(Usd(5'000'000'000).shown, "$5.00");
  EXPECT_EQ(Usd(123'456'789).shown, "$0.123456789");
}

TEST(Cells, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(Text("a\x1b[31m\n").shown, "a?[31m?");
}

}  // namespace
}  // namespace tollgate::cli
