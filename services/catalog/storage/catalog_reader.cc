#include "services/catalog/storage/catalog_reader.h"

#include <yaml-cpp/yaml.h>

#include "common/config/config.h"

namespace tollgate::catalog {
namespace {

// Finds lines in the text once more with yaml-cpp: the proto that was read from it has none.
class Lines {
 public:
  explicit Lines(const std::string& text) {
    try {
      root_ = YAML::Load(text);
    } catch (const YAML::Exception&) {
      // The strict reader has accepted this text, so this is about the line numbers only.
      root_ = YAML::Node();
    }
  }

  int Find(const Place& place) const {
    try {
      YAML::Node item = root_[place.list];
      if (item.IsSequence()) item.reset(item[place.index]);
      if (place.engine >= 0) item.reset(item["engines"][place.engine]);
      if (!item.IsDefined()) return 0;
      if (!item.IsMap()) return item.Mark().line + 1;
      for (const auto& member : item) {
        if (member.first.Scalar() == place.field) return member.first.Mark().line + 1;
      }
      return item.Mark().line + 1;
    } catch (const YAML::Exception&) {
      return 0;
    }
  }

 private:
  YAML::Node root_;
};

}  // namespace

BasicResult<v1::Snapshot, Complaints> ReadCatalog(const std::string& text, const std::string& name,
                                                  const std::string& base_dir,
                                                  const std::string& brand) {
  config::v1::CatalogFile file;
  if (auto loaded = config::LoadText(text, name, base_dir, file); !loaded) {
    return Fail{Complaints{loaded.error()}};
  }
  const Lines lines(text);
  return BuildSnapshot(file, brand, name, [&](const Place& place) { return lines.Find(place); });
}

}  // namespace tollgate::catalog
