#include "services/cli/local_commands.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "services/cli/invocation.h"

namespace tollgate::cli {

std::vector<std::string> ForBillingBinary(const Arguments& arguments,
                                          const std::vector<std::string>& keys) {
  std::vector<std::string> options;
  for (const std::string& key : keys) {
    if (arguments.Has(key)) options.insert(options.end(), {"--" + key, arguments.Get(key)});
  }
  return options;
}

void RunBillingBinary(Invocation& invocation, const std::string& command,
                      const std::vector<std::string>& arguments) {
  std::error_code ignored;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::string beside = (own.parent_path() / "tollgate-billing").string();
  std::vector<std::string> words = {"tollgate-billing", command};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(beside.c_str(), argv.data());
  execvp("tollgate-billing", argv.data());
  invocation.ReportError("not_found",
                         "cannot start tollgate-billing, which works on the database: " +
                             std::string(std::strerror(errno)) + "; install it next to tollgate");
}

}  // namespace tollgate::cli
