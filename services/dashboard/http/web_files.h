// The built web application, with all files in memory. Browsers cache files with a hash in their
// name for ever, and revalidate the first page each time, so that an update is visible at once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/error/error.h"
#include "common/http/exchange.h"

namespace tollgate::dashboard {

// Path to which browsers report violations of the content policy.
inline constexpr std::string_view kCspReportPath = "/csp-report";

class WebFiles {
 public:
  // Reads the folder that `./dev web` wrote. Fails without index.html, or above 64 MiB.
  static Result<std::unique_ptr<const WebFiles>> Load(const std::string& folder);

  // Serves GET and HEAD. Paths of pages, which the application routes, get index.html; unknown
  // files get 404.
  http::HttpResponse Handle(const http::HttpRequest& request) const;

 private:
  struct Body {
    std::string bytes;  // empty: not available in this coding
    std::string etag;
  };
  struct File {
    std::string_view type;
    bool hashed = false;  // the name changes with the content
    Body plain, brotli, gzip;
  };

  WebFiles() = default;
  void AddHeaders(const File& file, http::Headers& headers) const;

  std::map<std::string, File, std::less<>> files_;  // by path, "/index.html"
};

// Registers the counter of reports at 0, so that alerts see the first increase.
void MakeCspReportCounter();
// Counts a browser's report and returns the response.
http::HttpResponse CountCspReport();

}  // namespace tollgate::dashboard
