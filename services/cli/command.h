// Commands over the admin API as rows of a table: which method a command calls, which flag sets
// which field of the request, and which fields of the response it shows. run_command.h executes
// rows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "services/cli/table.h"

namespace google::protobuf {
class Message;
}

namespace tollgate::cli {

class Invocation;

// What was given on the command line, by the key of the flag: "workspace" for -w,--workspace.
class Arguments {
 public:
  bool Has(const std::string& key) const { return values_.contains(key); }
  // The value of a flag that takes one; "" if it was not given.
  std::string Get(const std::string& key) const;
  std::vector<std::string> All(const std::string& key) const;
  int64_t Number(const std::string& key) const;  // 0 if it was not given
  void Set(const std::string& key, std::vector<std::string> values) {
    values_[key] = std::move(values);
  }
  // Replaces {key} by the argument's value. { key}: with a space before it, if the argument was
  // given.
  std::string Expand(const std::string& text) const;

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

// An option, switch or positional argument of a command.
struct Flag {
  enum class Takes { kByField, kText, kTexts, kNumber, kNumbers, kSwitch, kBool };
  enum class Check { kNone, kPositive, kNotNegative, kRange, kWords };
  // Reads a time or another value; nullopt if the text has another form.
  using Parse = std::optional<int64_t> (*)(const std::string& text);

  // names: as CLI11 has them: "-w,--workspace", or "amount" for a positional argument. field: path
  // of the request's field that gets the value; "": none.
  Flag(std::string names, std::string help, std::string field = "")
      : names(std::move(names)), help(std::move(help)), field(std::move(field)) {}
  std::string Key() const;

  Flag Required() const { return With(&Flag::required, true); }
  // sets: the value of the argument and the field.
  Flag Switch(const char* sets = "true") const {
    return With(&Flag::takes, Takes::kSwitch).With(&Flag::switch_value, sets);
  }
  Flag Number() const { return With(&Flag::takes, Takes::kNumber); }
  Flag TrueOrFalse() const { return With(&Flag::takes, Takes::kBool); }
  Flag Positive() const { return Number().With(&Flag::check, Check::kPositive); }
  Flag NotNegative() const { return Number().With(&Flag::check, Check::kNotNegative); }
  Flag Between(int64_t least, int64_t most) const {
    return Number()
        .With(&Flag::check, Check::kRange)
        .With(&Flag::low, least)
        .With(&Flag::high, most);
  }
  Flag OneOf(std::vector<std::string> choices) const {
    return With(&Flag::check, Check::kWords).With(&Flag::words, std::move(choices));
  }
  // The value if the flag is not given; help does not show it.
  Flag Otherwise(const char* value) const { return With(&Flag::fallback, value); }
  Flag Default(const char* value) const {
    return Otherwise(value).With(&Flag::fallback_is_shown, true);
  }
  // A word that leaves the field unset, for example "none".
  Flag Unset(const char* word) const { return With(&Flag::unset, word); }
  // Adds a term to request.filter instead of setting a field: "kind =".
  Flag Filter(const char* begin) const { return With(&Flag::filter, begin); }
  Flag Excludes(const char* other) const { return With(&Flag::excludes, other); }
  // What the field gets: "workspaces/{}", with the value for {}.
  Flag Into(const char* pattern) const { return With(&Flag::into, pattern); }
  // error: what to report if the text cannot be read; {} in it is the text.
  Flag As(Parse reader, const char* error) const {
    return With(&Flag::parse, reader).With(&Flag::problem, error);
  }

  std::string names, help, field;
  Takes takes = Takes::kByField;
  Check check = Check::kNone;
  bool required = false;
  bool fallback_is_shown = false;
  std::string switch_value, fallback, unset, filter, into, excludes, problem;
  std::vector<std::string> words;
  int64_t low = 0, high = 0;
  Parse parse = nullptr;

 private:
  template <typename Member, typename Value>
  Flag With(Member Flag::* member, Value value) const {
    Flag changed = *this;
    changed.*member = std::move(value);
    return changed;
  }
};

// A field of the response, as a column or, for one record, a line.
struct Shown {
  using MakeCell = Cell (*)(const google::protobuf::Message& message);

  // Items "NAME=PATH?EMPTY TITLE", separated by " | ". NAME: member in JSON. PATH: of the field in
  // the message, default: NAME; EMPTY: text if the field is empty. A string in a path may be
  // followed by a part of it: "name.id" and "name.workspace" of a resource name, "name.number" for
  // an id that is a number, "price.exact" for an amount with more than 9 decimals. "@key" is an
  // argument.
  static std::vector<Shown> Parse(const std::string& columns);

  std::string name;
  std::string title;
  std::string path;
  std::optional<std::string> empty;
  MakeCell cell = nullptr;  // instead of the path
};

// A field that the command sets itself. The value may name arguments: "workspaces/{workspace}".
struct Setting {
  std::string field;
  std::string value;
};

struct Command {
  using Message = google::protobuf::Message;
  using Prepare = bool (*)(Invocation& invocation, Arguments& arguments);
  using Show = void (*)(Invocation& invocation, const Arguments& arguments,
                        const Message& response);
  using Run = void (*)(Invocation& invocation, const Arguments& arguments);

  // words: "payment refund". A group of commands:
  Command(std::string words, std::string help) : words(std::move(words)), help(std::move(help)) {}
  // Calls a method of tollgate.admin.v1: "PaymentService.RefundPayment".
  Command(std::string words, std::string help, const char* method, std::vector<Flag> flags = {})
      : words(std::move(words)), help(std::move(help)), method(method), flags(std::move(flags)) {}
  // Executes a function.
  Command(std::string words, std::string help, Run run, std::vector<Flag> flags = {})
      : words(std::move(words)), help(std::move(help)), flags(std::move(flags)), run(run) {}

  Command Sets(const char* field, const char* value) const {
    Command changed = *this;
    changed.sets.push_back({field, value});
    return changed;
  }
  // Shows one record: the response, or the message at this path of it.
  Command Shows(const std::string& columns, const char* message = "") const {
    return With(&Command::shown, Shown::Parse(columns)).With(&Command::record, message);
  }
  // Shows a repeated field of the response, one row for each element. member: its name in JSON,
  // default: the field's.
  Command Lists(const char* field, const char* none, const std::string& columns,
                const char* member = "") const {
    return Shows(columns)
        .With(&Command::list, field)
        .With(&Command::when_empty, none)
        .With(&Command::list_name, member);
  }
  // How to show the column of this name.
  Command WithCell(const std::string& name, Shown::MakeCell cell) const;
  // Moves money. what: what the journal of requests says it does; command: the one that shows
  // whether it was executed, default: `credit status`.
  Command Money(const char* what, const char* command = "") const {
    return With(&Command::money, what).With(&Command::ask, command);
  }
  // Before the request is sent: completes arguments. Returns false after reporting an error.
  Command Before(Prepare function) const { return With(&Command::prepare, function); }
  // Instead of showing the response.
  Command Then(Show function) const { return With(&Command::show, function); }
  // Shows only elements with this bool field.
  Command Only(const char* field) const { return With(&Command::only, field); }
  // The exit code is 1 if this bool field of the response is false.
  Command FailsWithout(const char* field) const { return With(&Command::ok, field); }

  std::string words, help, method;
  std::vector<Flag> flags;
  std::vector<Setting> sets;
  std::string record, list, list_name, when_empty, only, ok, money, ask;
  std::vector<Shown> shown;
  Prepare prepare = nullptr;
  Show show = nullptr;
  Run run = nullptr;

 private:
  template <typename Member, typename Value>
  Command With(Member Command::* member, Value value) const {
    Command changed = *this;
    changed.*member = std::move(value);
    return changed;
  }
};

// Flags of many commands.
Flag WorkspaceFlag();          // -w,--workspace
Flag ParentFlag();             // the same, as the parent of what is listed or created
Flag PositionalParentFlag();   // the same, or without -w
Flag LimitFlag(int64_t most);  // --limit of a list that is read in pages

}  // namespace tollgate::cli
