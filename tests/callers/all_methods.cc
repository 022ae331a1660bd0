#include "tests/callers/all_methods.h"

#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/process.h"

namespace tollgate::test {

std::vector<Method> AllMethods() {
  const char* source = std::getenv("TOLLGATE_SOURCE");
  const std::string root = std::string(source ? source : ".") + "/proto";
  const TempDir folder;
  const std::string set_file = folder.path() + "/protos";
  std::string command = "protoc -I " + root + " -o " + set_file;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root + "/tollgate")) {
    if (entry.path().extension() == ".proto") command += " " + entry.path().string();
  }
  EXPECT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT: a list of files
  google::protobuf::FileDescriptorSet set;
  EXPECT_TRUE(set.ParseFromString(ReadFile(set_file)));
  std::vector<Method> methods;
  for (const auto& file : set.file()) {
    for (const auto& service : file.service()) {
      const bool is_admin = file.package() == "tollgate.admin.v1" ||
                            service.name().find("Admin") != std::string::npos ||
                            service.name() == "SessionService" ||   // the dashboard's front
                            service.name() == "FrontService" ||     // its own services
                            service.name() == "SummaryService" ||   // and of billing
                            service.name() == "KeySpendService" ||  // asked by auth
                            service.name() == "ClosingService" ||   // likewise
                            service.name() == "AuditSourceService";
      for (const auto& method : service.method()) {
        methods.push_back({file.package() + "." + service.name() + "/" + method.name(), is_admin});
      }
    }
  }
  return methods;
}

}  // namespace tollgate::test
