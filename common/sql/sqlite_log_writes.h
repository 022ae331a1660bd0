// A file system for SQLite that writes its log in large pieces.
#pragma once

namespace tollgate::sql {

// Returns its name for sqlite3_open_v2; the first call registers it. It equals SQLite's default
// file system except for the write-ahead log. SQLite writes two small pieces for each page, 24
// bytes and the page, and these system calls are a large part of a commit's cost. Here the frames
// of a transaction wait in memory and are written together with its commit frame, which makes them
// valid. The write of the commit frame returns any error. Only for connections that write nothing
// before they commit (PRAGMA cache_spill=OFF). Null if it cannot be registered (out of memory); the
// default file system works as well.
const char* LogWritesVfs();

}  // namespace tollgate::sql
