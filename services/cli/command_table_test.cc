// Every row of the table of commands agrees with the admin API.
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "services/cli/commands.h"
#include "services/cli/message_fields.h"

namespace tollgate::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::MethodDescriptor;

const MethodDescriptor* Find(const Command& command) {
  return DescriptorPool::generated_pool()->FindMethodByName("tollgate.admin.v1." + command.method);
}

// The message that the columns of a command are fields of.
const Descriptor* ShownType(const Command& command, const MethodDescriptor& method) {
  const std::string path = command.list.empty() ? command.record : command.list;
  if (path.empty()) return method.output_type();
  const FieldPath found = FieldPath::Of(*method.output_type(), path);
  return found.fields.empty() ? nullptr : found.fields.back()->message_type();
}

// The keys that a template names: "workspace" of "workspaces/{workspace}".
std::vector<std::string> KeysIn(const std::string& text) {
  std::vector<std::string> keys;
  for (size_t open = text.find('{'); open != std::string::npos; open = text.find('{', open + 1)) {
    std::string key = text.substr(open + 1, text.find('}', open) - open - 1);
    std::erase(key, ' ');
    keys.push_back(key);
  }
  return keys;
}

TEST(CommandTableTest, EachRowIsAGroupOrCallsAMethodThatExists) {
  std::set<std::string> words;
  for (const Command& command : AllCommands()) {
    EXPECT_TRUE(words.insert(command.words).second) << command.words << " is there twice";
    const size_t space = command.words.rfind(' ');
    if (space != std::string::npos) {
      EXPECT_TRUE(words.contains(command.words.substr(0, space))) << command.words;
    }
    EXPECT_NE(command.help, "") << command.words;
    if (!command.method.empty()) EXPECT_NE(Find(command), nullptr) << command.words;
    const bool shows = command.show != nullptr || command.run != nullptr || !command.shown.empty();
    EXPECT_TRUE(command.method.empty() || shows) << command.words;
  }
  EXPECT_GT(words.size(), 60U);
}

TEST(CommandTableTest, FlagsAndSettingsNameFieldsOfTheRequest) {
  for (const Command& command : AllCommands()) {
    const MethodDescriptor* method = Find(command);
    for (const Flag& flag : command.flags) {
      if (flag.field.empty() && flag.filter.empty()) continue;
      if (method == nullptr && command.run != nullptr) continue;  // calls its method by itself
      ASSERT_NE(method, nullptr) << command.words << " calls nothing: " << flag.names;
      const std::string path = flag.field.empty() ? "filter" : flag.field;
      const FieldPath found = FieldPath::Of(*method->input_type(), path);
      ASSERT_FALSE(found.fields.empty()) << command.words << " " << flag.names << ": " << path;
      const FieldDescriptor& field = *found.fields.back();
      const bool is_time = field.message_type() != nullptr && !field.is_map();
      EXPECT_TRUE(!is_time || flag.parse != nullptr) << command.words << " " << flag.names;
    }
    if (method == nullptr) continue;
    for (const Setting& set : command.sets) {
      EXPECT_FALSE(FieldPath::Of(*method->input_type(), set.field).fields.empty())
          << command.words << ": " << set.field;
    }
  }
}

TEST(CommandTableTest, WordsOfFlagsAreValuesOfTheirEnums) {
  for (const Command& command : AllCommands()) {
    for (const Flag& flag : command.flags) {
      if (flag.words.empty() || flag.field.empty()) continue;
      std::unique_ptr<google::protobuf::Message> request(
          google::protobuf::MessageFactory::generated_factory()
              ->GetPrototype(Find(command)->input_type())
              ->New());
      EXPECT_TRUE(SetField(*request, flag.field, flag.words)) << command.words << " " << flag.names;
    }
  }
}

TEST(CommandTableTest, TemplatesNameArguments) {
  for (const Command& command : AllCommands()) {
    if (command.prepare != nullptr) continue;  // may add arguments
    std::set<std::string> keys;
    for (const Flag& flag : command.flags) keys.insert(flag.Key());
    std::string templates = command.money;
    for (const Setting& set : command.sets) templates += set.value;
    for (const Shown& shown : command.shown) {
      if (shown.path.starts_with('@')) templates += "{" + shown.path.substr(1) + "}";
    }
    for (const std::string& key : KeysIn(templates)) {
      EXPECT_TRUE(keys.contains(key)) << command.words << ": " << key;
    }
    if (!command.money.empty()) EXPECT_TRUE(keys.contains("workspace")) << command.words;
  }
}

TEST(CommandTableTest, ColumnsAreFieldsOfTheResponse) {
  const std::set<std::string> parts = {"", "id", "workspace", "number", "exact"};
  for (const Command& command : AllCommands()) {
    if (command.method.empty() || command.show != nullptr) continue;  // has columns of its own
    const Descriptor* type = ShownType(command, *Find(command));
    ASSERT_NE(type, nullptr) << command.words;
    for (const Shown& shown : command.shown) {
      if (shown.cell != nullptr || shown.path.starts_with('@')) continue;
      const std::string& path = shown.path;
      const FieldPath found = FieldPath::Of(*type, path);
      ASSERT_FALSE(found.fields.empty()) << command.words << ": " << path;
      EXPECT_TRUE(parts.contains(found.part)) << command.words << ": " << path;
      const FieldDescriptor& field = *found.fields.back();
      if (field.message_type() != nullptr) {
        EXPECT_EQ(field.message_type()->full_name(), "google.protobuf.Timestamp")
            << command.words << ": " << path;
      }
    }
    for (const std::string& flag : {command.ok, command.only}) {
      if (flag.empty()) continue;
      const FieldPath found = FieldPath::Of(*type, flag);
      ASSERT_FALSE(found.fields.empty()) << command.words << ": " << flag;
      EXPECT_EQ(found.fields.back()->cpp_type(), FieldDescriptor::CPPTYPE_BOOL) << command.words;
    }
  }
}

// A changed text would not find a request of an earlier version whose result is unknown, and move
// the money twice.
TEST(CommandTableTest, WhatTheJournalSaysAboutMoneyStays) {
  std::vector<std::string> money;
  for (const Command& command : AllCommands()) {
    if (!command.money.empty()) money.push_back(command.words + ": " + command.money);
  }
  EXPECT_EQ(money, (std::vector<std::string>{
                       "credit add: credit {kind} {amount} {reason}",
                       "credit grant: credit grant {amount} {reason}",
                       "adjustment create: adjustment create {kind} {amount}{ "
                       "granted} {reference} "
                       "{reason}",
                       "payment create: payment create {amount}",
                       "payment refund: payment refund {payment} {amount}{ adopt}"}));
}

TEST(ShownTest, ColumnsAreReadFromText) {
  const auto columns = Shown::Parse(
      "id=name.id ID | cap_usd?none Cap a month "
      "| at=time?- AT (UTC) | x   indented");
  ASSERT_EQ(columns.size(), 4U);
  EXPECT_EQ(columns[0].name, "id");
  EXPECT_EQ(columns[0].path, "name.id");
  EXPECT_EQ(columns[0].title, "ID");
  EXPECT_EQ(columns[0].empty, std::nullopt);
  EXPECT_EQ(columns[1].path, "cap_usd");
  EXPECT_EQ(columns[1].empty, "none");
  EXPECT_EQ(columns[1].title, "Cap a month");
  EXPECT_EQ(columns[2].path, "time");
  EXPECT_EQ(columns[2].empty, "-");
  EXPECT_EQ(columns[3].title, "  indented");
}

TEST(ArgumentsTest, TemplatesGetTheArguments) {
  Arguments arguments;
  arguments.Set("workspace", {"acme"});
  arguments.Set("granted", {"granted"});
  EXPECT_EQ(arguments.Expand("workspaces/{workspace}/cap"), "workspaces/acme/cap");
  EXPECT_EQ(arguments.Expand("5{ granted} {reference} {workspace}"), "5 granted  acme");
  EXPECT_EQ(Arguments().Expand("5{ granted} {reference}"), "5 ");
}

}  // namespace
}  // namespace tollgate::cli
