#include "services/catalog/storage/catalog_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/catalog/testing/sample_catalog.h"

namespace tollgate::catalog {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The only problem of this text, or "accepted".
std::string ReaderProblem(const std::string& text) {
  const auto result = ReadCatalog(text, "catalog.yaml", ".", "tollgate");
  if (result) return "accepted";
  if (result.error().size() != 1)
    return "several problems: " + testing::PrintToString(result.error());
  return result.error()[0];
}

TEST(CatalogReader, ProblemsNameFileLineItemAndField) {
  EXPECT_EQ(ReaderProblem(CatalogWith("pool: main", "pool: mian")),
            "catalog.yaml:11: model \"acme/large\": pool: \"mian\" is not the name of a pool in "
            "this file");
  EXPECT_THAT(ReaderProblem(CatalogWith("kind: vllm", "kind: vlm")),
              StartsWith("catalog.yaml:25: engine \"engine-1\": kind: \"vlm\" is not one of"));
  // An absent field has the line of its item.
  EXPECT_THAT(ReaderProblem(CatalogWith("    context_window: 8192\n", "")),
              StartsWith("catalog.yaml:12: model \"acme/small\": context_window:"));
  EXPECT_EQ(ReaderProblem(kGoodCatalog +
                          "unlisted:\n  pool: mian\n  context_window: 32768\n"
                          "  input_usd_per_million: \"0.5\"\n  output_usd_per_million: \"1.5\"\n"),
            "catalog.yaml:33: unlisted: pool: \"mian\" is not the name of a pool in this file");
}

TEST(CatalogReader, TheFileIsReadStrictly) {
  EXPECT_THAT(ReaderProblem(CatalogWith("pool: main", "pol: main")), HasSubstr("pol"));
  EXPECT_THAT(ReaderProblem("models: 5"), StartsWith("catalog.yaml"));
}

// An editor or a full disk leaves such a file for a moment; it must not take every model away.
TEST(CatalogReader, AFileWithoutModelsIsRefusedUnlessItSaysSo) {
  for (const char* text : {"", "\n", "# models\n", "models: []\n", "models: []\npools: []\n"}) {
    EXPECT_THAT(ReaderProblem(text), HasSubstr("allow_empty: true")) << text;
  }
  EXPECT_EQ(ReaderProblem("allow_empty: true\n"), "accepted");
  EXPECT_EQ(ReaderProblem("models: []\nallow_empty: true\n"), "accepted");
}

}  // namespace
}  // namespace tollgate::catalog
