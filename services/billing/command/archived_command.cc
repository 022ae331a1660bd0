#include <cstdio>

#include "common/base/clock.h"
#include "services/billing/archive/archive_query.h"
#include "services/billing/command/place.h"

namespace tollgate::billing {
namespace {

struct ArchivedWords {
  Place place;
  ArchiveQuery query;
  std::string month;
};

// Returns the exit code.
int PrintArchived(ArchivedWords& words) {
  words.query.month = ParseMonth(words.month);
  if (!words.month.empty() && words.query.month == 0) {
    Failed("--month: \"" + words.month + "\" is not a month such as 2026-01");
    return 2;
  }
  int exit_code = 0;
  const auto connection = Connect(words.place, /*read_only=*/true, &exit_code);
  if (connection == nullptr) return exit_code;
  auto rows = QueryArchive(*connection, words.query, [](std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
  });
  if (!rows.ok()) return Failed(rows.error().message);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return Failed("cannot write the rows");
  return 0;
}

}  // namespace

void AddArchived(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand(
      "archived",
      "Print a workspace's requests or entries of archived months from the files of the archive, "
      "after verifying the files. Amounts are in nano-USD, times (_us) in microseconds since 1970");
  auto words = std::make_shared<ArchivedWords>();
  ArchiveQuery& query = words->query;
  AddPlace(command, words->place);
  command.add_option("--from", query.folder, "Folder of the archive")->required();
  command.add_option("-w,--workspace", query.workspace, "Workspace")->required();
  command.add_option("--month", words->month, "Only the file of this month, as YYYY-MM");
  CLI::Option* entries =
      command.add_flag("--entries", query.entries, "Entries of the ledger instead of requests");
  command.add_option("--request", query.id,
                     "Only this request, as 32 hexadecimal digits, or of the entries this command");
  command.add_option("--key", query.key_id, "Only requests of this API key")->excludes(entries);
  command.add_flag("--json", query.json, "JSON lines instead of CSV");
  command.callback([words, &exit_code] { exit_code = PrintArchived(*words); });
}

}  // namespace tollgate::billing
