#include "services/cli/run_command.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>

#include "services/cli/invocation.h"
#include "services/cli/message_fields.h"

namespace tollgate::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int64_t kPageSize = 200;

// What a flag takes follows from the type of its field.
Flag::Takes TakesOf(const Flag& flag, const Message* request) {
  if (flag.takes != Flag::Takes::kByField) return flag.takes;
  if (request == nullptr || flag.field.empty()) return Flag::Takes::kText;
  const FieldDescriptor& field =
      *FieldPath::Of(*request->GetDescriptor(), flag.field).fields.back();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return Flag::Takes::kSwitch;
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return field.is_repeated() ? Flag::Takes::kNumbers : Flag::Takes::kNumber;
    default:
      return field.is_repeated() ? Flag::Takes::kTexts : Flag::Takes::kText;
  }
}

template <typename Value>
CLI::Option* AddValue(CLI::App& app, const Flag& flag) {
  return app.add_option_function<Value>(flag.names, [](const Value&) {}, flag.help);
}

CLI::Option* AddOption(CLI::App& app, const Flag& flag, Flag::Takes takes) {
  switch (takes) {
    case Flag::Takes::kSwitch:
      return app.add_flag_callback(flag.names, [] {}, flag.help);
    case Flag::Takes::kBool:
      return AddValue<bool>(app, flag);
    case Flag::Takes::kNumber:
      return AddValue<int64_t>(app, flag);
    case Flag::Takes::kNumbers:
      return AddValue<std::vector<int64_t>>(app, flag);
    case Flag::Takes::kTexts:
      return AddValue<std::vector<std::string>>(app, flag);
    default:
      return AddValue<std::string>(app, flag);
  }
}

CLI::Option* AddFlag(CLI::App& app, const Flag& flag, const Message* request) {
  CLI::Option* option = AddOption(app, flag, TakesOf(flag, request));
  option->required(flag.required);
  if (flag.check == Flag::Check::kPositive) option->check(CLI::PositiveNumber);
  if (flag.check == Flag::Check::kNotNegative) option->check(CLI::NonNegativeNumber);
  if (flag.check == Flag::Check::kRange) option->check(CLI::Range(flag.low, flag.high));
  if (flag.check == Flag::Check::kWords) option->check(CLI::IsMember(flag.words));
  if (flag.fallback_is_shown) option->default_str(flag.fallback);
  if (!flag.excludes.empty()) option->excludes(app.get_option(flag.excludes));
  return option;
}

std::vector<std::string> ValuesOf(const Flag& flag, Flag::Takes takes, const CLI::Option& option) {
  if (option.count() == 0) return {};
  if (takes == Flag::Takes::kBool) return {option.as<bool>() ? "true" : "false"};
  if (takes != Flag::Takes::kSwitch) return option.results();
  return option.as<bool>() ? std::vector<std::string>{flag.switch_value}
                           : std::vector<std::string>{};  // --flag=false
}

// Appends a term to a filter.
void AddTerm(std::string& filter, const std::string& begin, const std::string& value) {
  if (value.empty()) return;
  filter += (filter.empty() ? "" : " AND ") + begin + " \"";
  for (const char c : value) {
    if (c == '"' || c == '\\') filter += '\\';
    filter += c;
  }
  filter += '"';
}

// Puts the value where the pattern has {}.
std::string Put(const std::string& value, std::string pattern) {
  if (const size_t at = pattern.find("{}"); at != std::string::npos) pattern.replace(at, 2, value);
  return pattern;
}

// Sets the fields of the request that flags name, and its update_mask. Returns what is wrong with a
// value, or "".
std::string FillIn(const Command& command, const Arguments& arguments, Message* request) {
  std::string filter;
  for (const Flag& flag : command.flags) {
    std::vector<std::string> values = arguments.All(flag.Key());
    if (values.empty()) continue;
    const bool unset = !flag.unset.empty() && std::ranges::find(values, flag.unset) != values.end();
    if (unset && values.size() > 1) {
      return flag.problem.empty() ? "--" + flag.Key() + " " + flag.unset + " excludes other values"
                                  : Put(values.front(), flag.problem);
    }
    std::optional<int64_t> parsed;
    if (flag.parse != nullptr && !unset) {
      parsed = flag.parse(values.front());
      if (!parsed) return Put(values.front(), flag.problem);
    }
    if (!flag.filter.empty()) AddTerm(filter, flag.filter, values.front());
    if (request == nullptr || flag.field.empty()) continue;
    const FieldPath path = FieldPath::Of(*request->GetDescriptor(), flag.field);
    const FieldDescriptor& field = *path.fields.back();
    if (!flag.into.empty()) values = {Put(values.front(), flag.into)};
    const bool is_time = field.message_type() != nullptr && !field.is_map();
    if (!unset && is_time) {
      SetTime(*request, flag.field, parsed.value_or(0));
    } else if (!unset && !SetField(*request, flag.field, values)) {
      return Put(values.front(), flag.problem);
    }
    const size_t dot = flag.field.find('.');
    if (dot != std::string::npos) {
      SetField(*request, "update_mask.paths", {flag.field.substr(dot + 1)});
    }
  }
  if (!filter.empty()) SetField(*request, "filter", {filter});
  return "";
}

bool Send(Invocation& invocation, const Command& command, const Arguments& arguments,
          Message& request, Message& response) {
  if (command.money.empty()) return invocation.Call(command.method, request, response);
  return invocation.CallMoney(command.method, request, response, arguments.Get("workspace"),
                              arguments.Expand(command.money), command.ask);
}

void ShowPages(Invocation& invocation, const Command& command, const Arguments& arguments,
               Message& request, Message& response) {
  const FieldDescriptor& list =
      *FieldPath::Of(*response.GetDescriptor(), command.list).fields.back();
  const bool has_flags_for_pages = std::ranges::any_of(
      command.flags, [](const Flag& flag) { return flag.field == "page_size"; });
  int64_t left = arguments.Has("limit") && !has_flags_for_pages
                     ? arguments.Number("limit")
                     : std::numeric_limits<int64_t>::max();
  Table table = TableOf(command.shown);
  std::string token;
  do {
    if (!has_flags_for_pages) {
      SetField(request, "page_size", {std::to_string(std::min(left, kPageSize))});
    }
    if (!token.empty()) SetField(request, "page_token", {token});
    if (!Send(invocation, command, arguments, request, response)) return;
    const int size = response.GetReflection()->FieldSize(response, &list);
    for (int i = 0; i < size; ++i) {
      const Message& one = response.GetReflection()->GetRepeatedMessage(response, &list, i);
      if (!command.only.empty() && !BoolAt(one, command.only)) continue;
      table.Add(RowOf(command.shown, one, arguments));
    }
    left -= size;
    token = TextAt(response, "next_page_token");
  } while (!token.empty() && left > 0 && !has_flags_for_pages);
  invocation.ShowList(table, command.list_name.empty() ? command.list : command.list_name,
                      command.when_empty);
  const bool takes_token = std::ranges::any_of(
      command.flags, [](const Flag& flag) { return flag.field == "page_token"; });
  if (takes_token && !token.empty() && !invocation.options().json) {
    std::printf("More: --page-token %s\n", token.c_str());
  }
}

CLI::App& ParentOf(CLI::App& app, const std::string& words) {
  CLI::App* parent = &app;
  size_t begin = 0;
  for (size_t space = words.find(' '); space != std::string::npos; space = words.find(' ', begin)) {
    parent = parent->get_subcommand(words.substr(begin, space - begin));
    begin = space + 1;
  }
  return *parent;
}

void AddCommand(CLI::App& app, Invocation& invocation, const Command& command) {
  CLI::App& parent = ParentOf(app, command.words);
  CLI::App& added =
      *parent.add_subcommand(command.words.substr(command.words.rfind(' ') + 1), command.help);
  if (command.method.empty() && command.run == nullptr) {
    added.require_subcommand(1);
    return;
  }
  const Message* request = command.method.empty() ? nullptr : &Method::Of(command.method).request();
  std::vector<CLI::Option*> options;
  for (const Flag& flag : command.flags) options.push_back(AddFlag(added, flag, request));
  added.callback([&invocation, &added, request, options, command] {
    if (!added.get_subcommands().empty()) return;
    Arguments arguments;
    for (size_t i = 0; i < options.size(); ++i) {
      const Flag& flag = command.flags[i];
      auto values = ValuesOf(flag, TakesOf(flag, request), *options[i]);
      if (values.empty() && !flag.fallback.empty()) values = {flag.fallback};
      if (!values.empty()) arguments.Set(flag.Key(), std::move(values));
    }
    Run(invocation, command, std::move(arguments));
  });
}

}  // namespace

Table TableOf(const std::vector<Shown>& shown) {
  std::vector<Column> columns;
  for (const Shown& one : shown) columns.push_back({one.name, one.title});
  return Table(std::move(columns));
}

std::vector<Cell> RowOf(const std::vector<Shown>& shown, const Message& message,
                        const Arguments& arguments) {
  std::vector<Cell> row;
  for (const Shown& one : shown) {
    row.push_back(one.path.starts_with('@') ? Text(arguments.Get(one.path.substr(1)))
                                            : CellAt(message, one));
  }
  return row;
}

void AddCommands(CLI::App& app, Invocation& invocation, const std::vector<Command>& commands) {
  for (const Command& command : commands) AddCommand(app, invocation, command);
}

void Run(Invocation& invocation, const Command& command, Arguments arguments) {
  std::unique_ptr<Message> request, response;
  if (!command.method.empty()) {
    const Method method = Method::Of(command.method);
    request.reset(method.request().New());
    response.reset(method.response().New());
  }
  if (const std::string problem = FillIn(command, arguments, request.get()); !problem.empty()) {
    return invocation.ReportError("bad_option", problem);
  }
  if (command.prepare != nullptr && !command.prepare(invocation, arguments)) return;
  if (command.run != nullptr) return command.run(invocation, arguments);
  for (const Setting& set : command.sets) {
    SetField(*request, set.field, {arguments.Expand(set.value)});
  }
  SetField(*request, "request_id", {invocation.RequestId()});
  if (!command.list.empty()) {
    return ShowPages(invocation, command, arguments, *request, *response);
  }
  if (!Send(invocation, command, arguments, *request, *response)) return;
  if (command.show != nullptr) return command.show(invocation, arguments, *response);
  Table table = TableOf(command.shown);
  table.Add(RowOf(command.shown, MessageAt(*response, command.record), arguments));
  invocation.ShowRecord(table);
  if (!command.ok.empty() && !BoolAt(*response, command.ok)) invocation.set_exit_code(1);
}

}  // namespace tollgate::cli
