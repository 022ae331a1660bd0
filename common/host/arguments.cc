// The command line of every process.
#include <google/protobuf/message.h>

#include <cstdio>
#include <string>

#include "common/config/config.h"
#include "common/host/host.h"
#include "common/host/process_metrics.h"

namespace tollgate::host {
namespace {

void PrintHelp(std::string_view process_name) {
  std::printf(
      "tollgate-%.*s --config FILE [--check-config]\n"
      "  --config FILE    YAML configuration; docs/operations.md lists its fields\n"
      "  --check-config   check the syntax and the fields of the file, then exit\n"
      "  --version        print the version and the compiler, then exit\n",
      static_cast<int>(process_name.size()), process_name.data());
}

}  // namespace

bool ReadArguments(int argc, char** argv, std::string_view process_name,
                   google::protobuf::Message& config, int* exit_code) {
  std::string file;
  bool check_only = false;
  *exit_code = 0;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      PrintHelp(process_name);
      return false;
    }
    if (argument == "--version") {
      std::printf("%s\n", BuildInformationJson(process_name).c_str());
      return false;
    }
    if (argument == "--check-config") {
      check_only = true;
    } else if (argument == "--config" && i + 1 < argc) {
      file = argv[++i];
    } else if (argument.starts_with("--config=")) {
      file = argument.substr(9);
    } else {
      std::fprintf(stderr, "unknown argument \"%s\"; see --help\n", argv[i]);
      *exit_code = 2;
      return false;
    }
  }
  *exit_code = 2;
  if (file.empty()) {
    std::fprintf(stderr, "--config FILE is missing; see --help\n");
    return false;
  }
  auto loaded = config::LoadFile(file, config);
  if (!loaded) {
    std::fprintf(stderr, "%s\n", loaded.error().c_str());
    return false;
  }
  *exit_code = 0;
  if (check_only) std::printf("%s is well-formed\n", file.c_str());
  return !check_only;
}

}  // namespace tollgate::host
