// The built web application: all of its files are in memory. Files with a hash in their name are
// kept by browsers for ever, the first page is asked for again each time, so that an update is seen
// at once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/error/error.h"
#include "common/http/exchange.h"

namespace tollgate::dashboard {

// Where browsers report what the content policy refused.
inline constexpr std::string_view kCspReportPath = "/csp-report";

class WebFiles {
 public:
  // Reads the folder that `./dev web` wrote. strict_transport: the page is seen over https, so
  // browsers shall never use http for it again. Fails without index.html, or beyond 64 MiB.
  static Result<std::unique_ptr<const WebFiles>> Load(const std::string& folder,
                                                      bool strict_transport);

  // GET and HEAD. Paths of pages, which the application knows, get index.html; unknown files 404.
  http::HttpResponse Handle(const http::HttpRequest& request) const;

 private:
  struct Body {
    std::string bytes;  // empty: there is none of this coding
    std::string etag;
  };
  struct File {
    std::string_view type;
    bool hashed = false;  // the name changes with the content
    Body plain, brotli, gzip;
  };

  explicit WebFiles(bool strict_transport) : strict_transport_(strict_transport) {}
  void AddHeaders(const File& file, http::Headers& headers) const;

  const bool strict_transport_;
  std::map<std::string, File, std::less<>> files_;  // by path, "/index.html"
};

// Makes the counter of reports, so that alerts see it grow from zero.
void MakeCspReportCounter();
// The answer to a report of a browser; it is counted.
http::HttpResponse CountCspReport();

}  // namespace tollgate::dashboard
