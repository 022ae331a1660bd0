// tollgate-demo-history: gives a new installation a workspace with a month of made-up history,
// before its first start.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "common/base/clock.h"
#include "common/config/config.h"
#include "common/money/money.h"
#include "services/catalog/storage/catalog_reader.h"
#include "tests/demonstration/history.h"
#include "tollgate/config/v1/config.pb.h"

namespace {

int Failed(const std::string& why) {
  std::fprintf(stderr, "tollgate-demo-history: %s\n", why.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Makes a month of demonstration history, before the first start",
               "tollgate-demo-history");
  std::string file;
  tollgate::demonstration::HistoryOptions options;
  app.add_option("--config", file, "The configuration file of the all-in-one")->required();
  app.add_option("--seed", options.seed, "Another month for another number; default 1");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  tollgate::config::v1::AllInOneConfig config;
  if (auto loaded = tollgate::config::LoadFile(file, config); !loaded)
    return Failed(loaded.error());
  options.auth_url = config.auth().sql().url();
  options.pepper = config.auth().pepper();
  if (!config.auth().brand().empty()) options.brand = config.auth().brand();
  options.billing_url = config.billing().sql().url();
  std::ifstream in(config.catalog().file());
  std::stringstream text;
  text << in.rdbuf();
  auto catalog = tollgate::catalog::ReadCatalog(
      text.str(), config.catalog().file(),
      std::filesystem::path(config.catalog().file()).parent_path().string(), options.brand);
  if (!catalog) return Failed(catalog.error().front());
  options.catalog = *std::move(catalog);
  tollgate::catalog::SetVersion(options.catalog, 1);
  options.now_us = tollgate::SystemClock::Get().WallUs();
  auto made = tollgate::demonstration::MakeHistory(options);
  if (!made) return Failed(made.error());
  std::printf("%lld requests of 30 days, %s USD\n", static_cast<long long>(made->requests),
              tollgate::NanoToDecimalUsd(made->charged_nano_usd).c_str());
  return 0;
}
