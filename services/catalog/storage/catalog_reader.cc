#include "services/catalog/storage/catalog_reader.h"

#include <yaml-cpp/yaml.h>

#include "common/config/config.h"

namespace tollgate::catalog {
namespace {

// Parses the text a second time to find line numbers, which the config proto does not have.
class LineFinder {
 public:
  explicit LineFinder(const std::string& text) {
    try {
      root_ = YAML::Load(text);
    } catch (const YAML::Exception&) {
      // The strict reader has accepted this text. Without a tree, problems just have no line
      // numbers.
      root_ = YAML::Node();
    }
  }

  int Find(const Location& location) const {
    try {
      YAML::Node item = root_[location.list];
      if (item.IsSequence()) item.reset(item[location.index]);
      if (location.engine >= 0) item.reset(item["engines"][location.engine]);
      if (!item.IsDefined()) return 0;
      if (!item.IsMap()) return item.Mark().line + 1;
      for (const auto& member : item) {
        if (member.first.Scalar() == location.field) return member.first.Mark().line + 1;
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

BasicResult<v1::Snapshot, Problems> ReadCatalog(const std::string& text, const std::string& name,
                                                const std::string& base_dir,
                                                const std::string& brand) {
  config::v1::CatalogFile file;
  if (auto loaded = config::LoadText(text, name, base_dir, file); !loaded) {
    return Fail{Problems{loaded.error()}};
  }
  // An editor or a full disk may leave an empty file for a moment.
  if (file.models_size() == 0 && !file.has_unlisted() && !file.allow_empty()) {
    return Fail{Problems{name + ": there are no models (allow_empty: true accepts that)"}};
  }
  const LineFinder lines(text);
  return BuildSnapshot(file, brand, name,
                       [&](const Location& location) { return lines.Find(location); });
}

}  // namespace tollgate::catalog
