// A file system for SQLite that writes its log in large pieces.
#pragma once

namespace tollgate::sql {

// Its name for sqlite3_open_v2; the first call registers it. It is SQLite's default
// file system except for the write-ahead log: SQLite writes two small pieces for each page, 24
// bytes and the page, and the calls of the kernel are a good part of a commit's cost. Here the
// frames of a transaction wait in memory and are written together with its commit frame, which is
// what makes them count: the write of the commit frame returns what went wrong. Only for
// connections that write nothing before they commit (PRAGMA cache_spill=OFF). Null when it cannot
// be registered (out of memory); the default serves as well.
const char* LogWritesVfs();

}  // namespace tollgate::sql
