#include "common/config/config.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "common/config/testing/temp_folder.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::config {
namespace {

using testing::TempFolder;
using tollgate::config::v1::AllInOneConfig;
using tollgate::config::v1::CatalogFile;

// Returns the error of loading the text as an AllInOneConfig; "" if it is valid.
std::string ErrorOf(const std::string& text) {
  AllInOneConfig config;
  const auto loaded = LoadText(text, "t.yaml", ".", config);
  return loaded.ok() ? "" : loaded.error();
}

TEST(Config, ReadsNestedMessagesListsAndScalars) {
  AllInOneConfig config;
  const auto loaded = LoadText(R"(
host: {threads: 2, log_level: warn}
gateway:
  listen: 127.0.0.1:8080
  max_body_bytes: 16777216
  refuse_large_max_tokens: true
  legacy_key_prefixes: [tg-, "old-"]
billing:
)",
                               "t.yaml", ".", config);
  ASSERT_TRUE(loaded.ok()) << loaded.error();
  EXPECT_EQ(config.host().threads(), 2);
  EXPECT_EQ(config.host().log_level(), "warn");
  EXPECT_EQ(config.gateway().listen(), "127.0.0.1:8080");
  EXPECT_EQ(config.gateway().max_body_bytes(), 16777216);
  EXPECT_TRUE(config.gateway().refuse_large_max_tokens());
  ASSERT_EQ(config.gateway().legacy_key_prefixes_size(), 2);
  EXPECT_EQ(config.gateway().legacy_key_prefixes(1), "old-");
}

TEST(Config, AnEmptyFileIsValid) {
  EXPECT_EQ(ErrorOf(""), "");
  EXPECT_EQ(ErrorOf("# only a comment\n"), "");
}

TEST(Config, UnquotedPricesKeepTheirText) {
  CatalogFile file;
  const auto loaded = LoadText(
      "models: [{id: a/b, input_usd_per_million: 0.10, created: 2026-01-02}]", "c", ".", file);
  ASSERT_TRUE(loaded.ok()) << loaded.error();
  EXPECT_EQ(file.models(0).input_usd_per_million(), "0.10");
  EXPECT_EQ(file.models(0).created(), "2026-01-02");
}

TEST(Config, ErrorsNameFileLineColumnAndTheClosestField) {
  EXPECT_EQ(ErrorOf("gateway:\n  listn: x\n"),
            "t.yaml:2:3: unknown field \"listn\" in GatewaySettings (did you mean \"listen\"?)");
  EXPECT_EQ(ErrorOf("zzzzzz: 1\n"), "t.yaml:1:1: unknown field \"zzzzzz\" in AllInOneConfig");
  EXPECT_EQ(ErrorOf("gateway:\n  max_body_bytes: many\n"),
            "t.yaml:2:19: max_body_bytes must be a whole number");
}

TEST(Config, RejectsWrongTypes) {
  EXPECT_EQ(ErrorOf("host: {threads: 1.5}"), "t.yaml:1:17: threads must be a whole number");
  EXPECT_EQ(ErrorOf("host: {threads: \"2\"}"), "t.yaml:1:17: threads must be a whole number");
  EXPECT_EQ(ErrorOf("host: {threads: [2]}"),
            "t.yaml:1:17: threads must be a whole number, not a list");
  EXPECT_EQ(ErrorOf("host: {threads: 2147483648}"), "t.yaml:1:17: threads is out of range");
  EXPECT_EQ(ErrorOf("host: {log_level: {a: b}}"),
            "t.yaml:1:19: log_level must be text, not a mapping");
  EXPECT_EQ(ErrorOf("gateway: {refuse_large_max_tokens: yes}"),
            "t.yaml:1:36: refuse_large_max_tokens must be true or false");
  EXPECT_EQ(ErrorOf("gateway: {cors_origins: x}"), "t.yaml:1:25: cors_origins must be a list");
  EXPECT_EQ(ErrorOf("gateway: [x]"),
            "t.yaml:1:10: GatewaySettings must be a mapping of field names to values");
  EXPECT_EQ(ErrorOf("just text"),
            "t.yaml:1:1: AllInOneConfig must be a mapping of field names to values");
}

TEST(Config, RejectsDuplicateKeysSecondDocumentsAndMalformedYaml) {
  EXPECT_EQ(ErrorOf("host:\n  threads: 1\n  threads: 2\n"),
            "t.yaml:3:3: duplicate key \"threads\"");
  EXPECT_NE(ErrorOf("host:\n---\nhost:\n").find("a second YAML document"), std::string::npos);
  EXPECT_EQ(ErrorOf("host: [1, 2\n").rfind("t.yaml:", 0), 0u);
  EXPECT_EQ(ErrorOf("a: *nothing\n").rfind("t.yaml:1:", 0), 0u);
}

TEST(Config, AFailureLeavesTheMessageUnchanged) {
  AllInOneConfig config;
  config.mutable_host()->set_threads(7);
  EXPECT_FALSE(LoadText("host: {threads: 1, oops: 2}", "t", ".", config).ok());
  EXPECT_EQ(config.host().threads(), 7);
}

TEST(LoadFile, ReportsWhyAFileCannotBeRead) {
  AllInOneConfig config;
  TempFolder folder;
  EXPECT_EQ(LoadFile(folder.path() + "/none.yaml", config).error(),
            folder.path() + "/none.yaml: cannot be read: No such file or directory");
  EXPECT_EQ(LoadFile(folder.path(), config).error(),
            folder.path() + ": is a directory, not a file");
}

// A message with field kinds that the configuration does not use yet.
class AnyMessage {
 public:
  AnyMessage() {
    google::protobuf::FileDescriptorProto file;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        R"pb(
          name: "any.proto"
          syntax: "proto3"
          enum_type {
            name: "LogLevel"
            value { name: "LOG_LEVEL_UNSPECIFIED" number: 0 }
            value { name: "LOG_LEVEL_DEBUG" number: 1 }
            value { name: "LOG_LEVEL_VERY_LOUD" number: 2 }
          }
          message_type {
            name: "Any"
            field {
              name: "level"
              number: 1
              type: TYPE_ENUM
              type_name: "LogLevel"
              label: LABEL_OPTIONAL
            }
            field { name: "ratio" number: 2 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
            field { name: "count" number: 3 type: TYPE_UINT32 label: LABEL_OPTIONAL }
            field { name: "a" number: 4 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
            field { name: "b" number: 5 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
            field {
              name: "limits"
              number: 6
              type: TYPE_MESSAGE
              type_name: "Any.LimitsEntry"
              label: LABEL_REPEATED
            }
            field {
              name: "maybe"
              number: 7
              type: TYPE_INT64
              label: LABEL_OPTIONAL
              oneof_index: 1
              proto3_optional: true
            }
            oneof_decl { name: "choice" }
            oneof_decl { name: "_maybe" }
            nested_type {
              name: "LimitsEntry"
              options { map_entry: true }
              field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
              field { name: "value" number: 2 type: TYPE_INT64 label: LABEL_OPTIONAL }
            }
          }
        )pb",
        &file));
    const auto* built = pool_.BuildFile(file);
    EXPECT_NE(built, nullptr);
    message_.reset(factory_.GetPrototype(built->message_type(0))->New());
  }
  // Returns the message as text, or the error.
  std::string Load(const std::string& text) {
    const auto loaded = LoadText(text, "t", ".", *message_);
    return loaded.ok() ? message_->ShortDebugString() : loaded.error();
  }

 private:
  google::protobuf::DescriptorPool pool_;
  google::protobuf::DynamicMessageFactory factory_;
  std::unique_ptr<google::protobuf::Message> message_;
};

TEST(Config, EnumsAreWrittenByTheirShortLowerCaseName) {
  AnyMessage any;
  EXPECT_EQ(any.Load("level: very_loud"), "level: LOG_LEVEL_VERY_LOUD");
  EXPECT_EQ(any.Load("level: LOUD"), "t:1:8: level must be one of debug, very_loud");
  EXPECT_EQ(any.Load("level: unspecified"), "t:1:8: level must be one of debug, very_loud");
}

TEST(Config, MapsOneofsOptionalsAndNumbers) {
  AnyMessage any;
  EXPECT_EQ(any.Load("limits: {x: 1, y: 2}"),
            "limits { key: \"x\" value: 1 } limits { key: \"y\" value: 2 }");
  EXPECT_EQ(any.Load("limits: {x: 1, x: 2}"), "t:1:16: duplicate key \"x\"");
  EXPECT_EQ(any.Load("limits: {x: z}"), "t:1:13: value must be a whole number");
  EXPECT_EQ(any.Load("{a: p, b: q}"), "t:1:8: only one field of choice may be set");
  EXPECT_EQ(any.Load("maybe: 0"), "maybe: 0");
  EXPECT_EQ(any.Load("ratio: 0.25"), "ratio: 0.25");
  EXPECT_EQ(any.Load("ratio: inf"), "t:1:8: ratio must be a number");
  EXPECT_EQ(any.Load("count: -1"), "t:1:8: count must be a whole number that is not negative");
}

}  // namespace
}  // namespace tollgate::config
