// tollgate-admin-openapi: reads the descriptors of the admin API with comments (protoc
// --include_imports --include_source_info -o /dev/stdout) and writes docs/admin-openapi.yaml, the
// API as OpenAPI 3.1. `./dev openapi` runs both. The descriptors that are linked into programs have
// no comments.
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "services/dashboard/openapi/describe.h"

int main() {
  google::protobuf::FileDescriptorSet set;
  if (!set.ParseFromIstream(&std::cin)) {
    std::fprintf(stderr, "standard input is not a FileDescriptorSet\n");
    return 1;
  }
  google::protobuf::DescriptorPool pool;
  std::vector<const google::protobuf::FileDescriptor*> files;
  for (const auto& file : set.file()) {
    const auto* built = pool.BuildFile(file);
    if (built == nullptr) return 1;  // the pool has logged the reason
    if (built->package() == "tollgate.admin.v1") files.push_back(built);
  }
  if (files.empty()) {
    std::fprintf(stderr, "standard input has no file of tollgate.admin.v1\n");
    return 1;
  }
  std::sort(files.begin(), files.end(),
            [](const auto* a, const auto* b) { return a->name() < b->name(); });
  std::printf("%s\n", tollgate::openapi::Describe(files).Yaml().c_str());
  return 0;
}
