// Parts of SQL statements, for Connection::QueryKeys and ExecuteRows. Internal to billing.
#pragma once

#include <string>
#include <string_view>

namespace tollgate::billing {

// "SELECT columns FROM table WHERE"
std::string Select(std::string_view columns, std::string_view table);
// "INSERT INTO table (columns) VALUES"
std::string Insert(std::string_view columns, std::string_view table);
// "ON CONFLICT (key) DO UPDATE SET a = excluded.a, …" for the given columns, "a, b".
std::string Update(std::string_view key, std::string_view columns);
// Like Update, with "a = table.a + excluded.a".
std::string AddUp(const std::string& table, std::string_view key, std::string_view columns);

}  // namespace tollgate::billing
