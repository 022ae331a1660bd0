#include "common/engines/kinds.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tollgate::engines {
namespace {

using namespace catalog::v1;  // NOLINT: the values of the enum

// The name in the catalog file, in metrics and in traces is the enum's, in lower case.
TEST(Kinds, EachValueOfTheEnumHasARowWithItsName) {
  const auto* values = EngineKind_descriptor();
  std::set<std::string_view> names;
  for (int i = 0; i < values->value_count(); ++i) {
    const Kind& kind = Of(static_cast<EngineKind>(values->value(i)->number()));
    std::string name = "ENGINE_KIND_";
    for (const char c : kind.name) name += static_cast<char>(c & ~0x20);
    EXPECT_EQ(name, values->value(i)->name());
    EXPECT_EQ(kind.value, values->value(i)->number());
    EXPECT_TRUE(kind.health_path.starts_with('/')) << kind.name;
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
  }
  EXPECT_EQ(All().size() + 1, names.size());
}

TEST(Kinds, ACatalogNamesEveryKindButUnspecified) {
  for (const Kind& kind : All()) EXPECT_EQ(Find(kind.name), &kind);
  EXPECT_EQ(Find("llamacpp")->value, ENGINE_KIND_LLAMACPP);
  EXPECT_EQ(Find("unspecified"), nullptr);
  EXPECT_EQ(Find("VLLM"), nullptr);
  EXPECT_EQ(Find(""), nullptr);
}

// A newer catalog may name kinds that an older router does not know.
TEST(Kinds, AnUnknownValueHasTheRowOfUnspecified) {
  EXPECT_EQ(&Of(static_cast<EngineKind>(99)), &Of(ENGINE_KIND_UNSPECIFIED));
  EXPECT_EQ(&Of(static_cast<EngineKind>(-1)), &Of(ENGINE_KIND_UNSPECIFIED));
}

TEST(Kinds, HaveTokenizersExceptOllama) {
  for (const Kind& kind : All()) EXPECT_EQ(kind.tokenizer.any(), kind.name != "ollama");
  EXPECT_FALSE(Of(ENGINE_KIND_UNSPECIFIED).tokenizer.any());
}

TEST(Kinds, OllamaAndOpenAiReportNoLoad) {
  for (const Kind& kind : All()) {
    EXPECT_EQ(kind.load.any(), kind.name != "ollama" && kind.name != "openai") << kind.name;
  }
}

TEST(Kinds, OnlyVllmAndSglangHaveACacheSalt) {
  for (const Kind& kind : All()) {
    EXPECT_EQ(kind.cache_salt, kind.name == "vllm" || kind.name == "sglang") << kind.name;
  }
}

// What a kind states about one endpoint is complete.
TEST(Kinds, RowsAreComplete) {
  for (const Kind& kind : All()) {
    EXPECT_EQ(kind.version.path.empty(), kind.version.member.empty()) << kind.name;
    EXPECT_EQ(kind.load.running.empty(), kind.load.queued.empty()) << kind.name;
    EXPECT_EQ(kind.tokenizer.any(), !kind.tokenizer.prompt_path.empty()) << kind.name;
    EXPECT_EQ(kind.tokenizer.any(), !kind.tokenizer.prompt_member.empty()) << kind.name;
  }
}

}  // namespace
}  // namespace tollgate::engines
